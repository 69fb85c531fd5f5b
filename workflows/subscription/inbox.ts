import { CancellationScope, condition } from '@temporalio/workflow';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';

export type Answer =
  | { ok: true; result: CommandResult }
  | { ok: false; code: ErrorCode; message: string };

interface Item {
  readonly command: Command;
  /** Somebody hears the answer and can send the command again. */
  readonly isAwaited: boolean;
  answer: Answer | null;
}

/**
 * Commands in the order they came. Handlers only put one in and wait for its answer; the main loop
 * alone takes them out, so no two things are ever done to one subscription at once. Rule: D-32.
 */
export class Inbox {
  private items: Item[] = [];

  get isEmpty(): boolean {
    return this.items.length === 0;
  }

  /** Whether somebody waits for an answer. */
  get isAwaited(): boolean {
    return this.items.some((item) => item.isAwaited);
  }

  /** A command that nobody waits for: it stays until it is done or refused. */
  post(command: Command): void {
    this.items.push({ command, isAwaited: false, answer: null });
  }

  async submit(command: Command): Promise<Answer> {
    const item: Item = { command, isAwaited: true, answer: null };
    this.items.push(item);
    // Temporal's cancellation request is a command of its own; it takes nobody's answer away.
    await CancellationScope.nonCancellable(() => condition(() => item.answer !== null));
    if (item.answer === null) throw new Error('the answer was taken back');
    return item.answer;
  }

  /** The oldest command; it stays until it is answered. */
  get first(): Command | undefined {
    return this.items[0]?.command;
  }

  /** Answers the oldest command and lets its caller go. */
  answerFirst(answer: Answer): void {
    const item = this.items.shift();
    if (item) item.answer = answer;
  }

  /** Lets everybody go who can send again; what nobody would send again stays. */
  answerAwaited(answer: Answer): void {
    for (const item of this.items) if (item.isAwaited) item.answer = answer;
    this.items = this.items.filter((item) => !item.isAwaited);
  }
}
