import type { ErrorCode } from '../domain/errors.ts';
import type { Command, CommandResult } from '../domain/subscription/commands.ts';

export interface SubscriptionRef {
  merchantId: string;
  subscriptionId: string;
}

/** What became of a command that was accepted. */
export type CommandAnswer =
  | { kind: 'result'; result: CommandResult }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** Accepted, and undecided after 25 s: the same command id gives the outcome later. */
  | { kind: 'pending' };

/** The API's and the activities' way to subscription workflows. */
export interface SubscriptionWorkflows {
  /**
   * Starts the workflow of a row that was just created. Resolves to false, within about a second,
   * when Temporal is out of reach: the sweep starts it then. Never throws; starting twice is once.
   */
  start(subscription: SubscriptionRef): Promise<boolean>;
  /**
   * Carries out a command once, however often it is sent with the same `commandId`. Throws
   * `DomainError('service_unavailable')` when it could not be handed over within 5 s; then it was
   * applied once or not at all, and sending it again finds out.
   */
  execute(subscription: SubscriptionRef, command: Command): Promise<CommandAnswer>;
  /** Tells a subscription where its clock was sent. Starts the workflow if it is missing. */
  advanceClock(subscription: SubscriptionRef, targetAt: number): Promise<void>;
  /** Asks for a stream's events to be delivered soon. Never throws: the sweep does it otherwise. */
  wakeStream(stream: { merchantId: string; streamId: string }): Promise<void>;
}
