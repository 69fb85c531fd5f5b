import { CancellationScope, condition } from '@temporalio/workflow';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';

export type Answer =
  | { ok: true; result: CommandResult }
  | { ok: false; code: ErrorCode; message: string };

export interface Item {
  readonly command: Command;
  answer: Answer | null;
}

/**
 * Commands in the order they came. Handlers only put one in and wait for its answer; the main loop
 * alone takes them out, so no two things are ever done to one subscription at once. Rule: D-32.
 */
export class Inbox {
  private readonly items: Item[] = [];

  get isEmpty(): boolean {
    return this.items.length === 0;
  }

  post(command: Command): Item {
    const item: Item = { command, answer: null };
    this.items.push(item);
    return item;
  }

  async submit(command: Command): Promise<Answer> {
    const item = this.post(command);
    // Temporal's cancellation request is a command of its own; it takes nobody's answer away.
    await CancellationScope.nonCancellable(() => condition(() => item.answer !== null));
    if (item.answer === null) throw new Error('the answer was taken back');
    return item.answer;
  }

  /** The oldest command; it stays until it is answered. */
  get first(): Item | undefined {
    return this.items[0];
  }

  /** Answers the oldest command and lets its caller go. */
  answerFirst(answer: Answer): void {
    const item = this.items.shift();
    if (item) item.answer = answer;
  }
}
