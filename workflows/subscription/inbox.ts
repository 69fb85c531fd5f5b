import { CancellationScope, condition } from '@temporalio/workflow';
import type { RefusalReason } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';

export type Answer = { ok: true; result: CommandResult } | ({ ok: false } & RefusalReason);

interface Item {
  readonly command: Command;
  /** True if a caller waits for the answer. The caller can send the command again. */
  readonly isAwaited: boolean;
  /**
   * The target of a test clock that was behind it when the command arrived; else null. The clock moves first, because
   * the caller may have read from the row that it is reached.
   */
  readonly afterAdvanceTo: number | null;
  answer: Answer | null;
}

/** In the order of arrival. Handlers add, and only the main loop removes: one command at a time. */
export class Inbox {
  private items: Item[] = [];

  get isEmpty(): boolean {
    return this.items.length === 0;
  }

  get isAwaited(): boolean {
    return this.items.some((item) => item.isAwaited);
  }

  /** Adds a command without a waiting caller. The command stays until it is executed or refused. */
  post(command: Command, afterAdvanceTo: number | null): void {
    this.items.push({ command, isAwaited: false, afterAdvanceTo, answer: null });
  }

  async submit(command: Command, afterAdvanceTo: number | null): Promise<Answer> {
    const item: Item = { command, isAwaited: true, afterAdvanceTo, answer: null };
    this.items.push(item);
    // A cancellation request must not end this wait, because the request becomes a command in this inbox.
    await CancellationScope.nonCancellable(() => condition(() => item.answer !== null));
    if (item.answer === null) throw new Error('the answer was taken back');
    return item.answer;
  }

  get first(): Command | undefined {
    return this.items[0]?.command;
  }

  get firstAfterAdvanceTo(): number | null {
    return this.items[0]?.afterAdvanceTo ?? null;
  }

  /** True if a caller waits for the answer of the oldest command. A signal has no such caller. */
  get isFirstAwaited(): boolean {
    return this.items[0]?.isAwaited === true;
  }

  /** Removes the oldest command and gives its caller the answer. */
  answerFirst(answer: Answer): void {
    const item = this.items.shift();
    if (item) item.answer = answer;
  }

  /** Removes every command with a waiting caller and gives the caller the answer. Other commands stay. */
  answerAwaited(answer: Answer): void {
    for (const item of this.items) if (item.isAwaited) item.answer = answer;
    this.items = this.items.filter((item) => !item.isAwaited);
  }
}
