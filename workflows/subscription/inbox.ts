import { CancellationScope, condition } from '@temporalio/workflow';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';

export type Answer =
  | { ok: true; result: CommandResult }
  | { ok: false; code: ErrorCode; message: string };

interface Item {
  readonly command: Command;
  /** A caller waits for the answer, and can send the command again. */
  readonly isAwaited: boolean;
  answer: Answer | null;
}

/**
 * Commands in the order of their arrival. Handlers only add a command and wait for its answer. The main loop
 * alone takes commands out, so a subscription is changed by one command at a time. Rule: D-32.
 */
export class Inbox {
  private items: Item[] = [];

  get isEmpty(): boolean {
    return this.items.length === 0;
  }

  /** True if a caller waits for an answer. */
  get isAwaited(): boolean {
    return this.items.some((item) => item.isAwaited);
  }

  /** Adds a command without a waiting caller. It stays until it is carried out or refused. */
  post(command: Command): void {
    this.items.push({ command, isAwaited: false, answer: null });
  }

  async submit(command: Command): Promise<Answer> {
    const item: Item = { command, isAwaited: true, answer: null };
    this.items.push(item);
    // A cancellation request by Temporal is a command of its own. It must not end this wait.
    await CancellationScope.nonCancellable(() => condition(() => item.answer !== null));
    if (item.answer === null) throw new Error('the answer was taken back');
    return item.answer;
  }

  /** The oldest command; it stays until it is answered. */
  get first(): Command | undefined {
    return this.items[0]?.command;
  }

  /** Removes the oldest command and gives its caller the answer. */
  answerFirst(answer: Answer): void {
    const item = this.items.shift();
    if (item) item.answer = answer;
  }

  /** Removes the commands with a waiting caller and gives each the answer. The others stay. */
  answerAwaited(answer: Answer): void {
    for (const item of this.items) if (item.isAwaited) item.answer = answer;
    this.items = this.items.filter((item) => !item.isAwaited);
  }
}
