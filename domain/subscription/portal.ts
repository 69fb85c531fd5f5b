import type { CancelCommand, Command } from './commands.ts';
import { cancelAt, isBilled } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** What a merchant lets payers do on their own page. */
export const PORTAL_RIGHTS = ['card', 'cancel', 'pause'] as const;
export type PortalRight = (typeof PORTAL_RIGHTS)[number];
export const DEFAULT_PORTAL: readonly PortalRight[] = ['card'];

/** The time in ms for which a link to a payer's own page works. */
export const PORTAL_LINK_MS = 3_600_000;

/** `keep` withdraws a planned cancellation; `resume` ends a pause. */
export const PORTAL_ACTIONS = ['cancel', 'keep', 'pause', 'resume'] as const;
export type PortalAction = (typeof PORTAL_ACTIONS)[number];

/** A payer pauses only what is paid, so that a pause puts off no charge that is due. */
export function allowedActions(
  state: SubscriptionState,
  rights: readonly PortalRight[],
  nowAt: number,
): PortalAction[] {
  const { status, owed, openAttempt, currentPeriodEndAt } = state;
  const isCancelled = cancelAt(state) !== null;
  const isPaid = owed === null && openAttempt === null && (currentPeriodEndAt ?? 0) > nowAt;
  const isOpen = isBilled(status) || status === 'PAUSED';
  const allowed: Record<PortalAction, boolean> = {
    cancel: rights.includes('cancel') && isOpen && !isCancelled,
    keep: rights.includes('cancel') && isCancelled,
    pause: rights.includes('pause') && isBilled(status) && isPaid && !isCancelled,
    resume: rights.includes('pause') && status === 'PAUSED' && !isCancelled,
  };
  return PORTAL_ACTIONS.filter((action) => allowed[action]);
}

/** An unpause needs a date in the future, also when the command waits for a worker. */
const SOON_MS = 5 * 60_000;

/** When a pause that the payer ends now is followed by a charge: after what is paid. `nowAt`: by its test clock. */
function resumedAt({ currentPeriodEndAt }: SubscriptionState, nowAt: number): number {
  return Math.max(currentPeriodEndAt ?? 0, nowAt + SOON_MS);
}

/** Returns when a cancellation by the payer ends the subscription; null: at once. */
export function cancelledAt(
  { status, currentPeriodEndAt }: SubscriptionState,
  nowAt: number,
): number | null {
  const isOver = status === 'UNPAID' || (currentPeriodEndAt ?? 0) <= nowAt;
  return isOver ? null : currentPeriodEndAt;
}

/** The cancellation of a payer: with the paid period, of an unpaid subscription at once. */
export function payersCancellation(
  { status }: SubscriptionState,
  commandId: string,
): CancelCommand {
  const atPeriodEnd = status === 'UNPAID' ? {} : { atPeriodEnd: true };
  return { kind: 'cancel', commandId, reason: 'cancelled', actor: 'payer', ...atPeriodEnd };
}

export function portalCommand(
  action: PortalAction,
  state: SubscriptionState,
  commandId: string,
  nowAt: number,
): Command {
  const order = { commandId, actor: 'payer' } as const;
  switch (action) {
    case 'cancel':
      return payersCancellation(state, commandId);
    case 'keep':
      return { ...order, kind: 'resume' };
    case 'pause':
      return { ...order, kind: 'pause' };
    case 'resume':
      return { ...order, kind: 'unpause', newNextPaymentAt: resumedAt(state, nowAt) };
  }
}
