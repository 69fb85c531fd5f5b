import { formatInstant } from '../calendar.ts';
import { formatAmount } from '../money.ts';
import { cycleAmountMinor, nextPaymentAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/**
 * Where the subscription stands, in words, as Markdown: the workflow's current details in the
 * Temporal Web UI. Holds no personal data.
 */
export function describe(state: SubscriptionState): string {
  const { terms } = state;
  const every =
    terms.intervalCount === 1 ? terms.interval : `${terms.intervalCount} ${terms.interval}`;
  return [
    `**${state.status}** · ${sentence(state)}`,
    `${formatAmount(terms.amountMinor, terms.currency)} every ${every.toLowerCase()} · ` +
      `${state.cyclesCharged} of ${terms.cycleCount} cycles paid`,
    ...(state.cooldownUntilAt === null
      ? []
      : [`Manual retry possible again from ${formatInstant(state.cooldownUntilAt)}`]),
    ...(state.testClockId === null ? [] : [`Lives by test clock \`${state.testClockId}\``]),
    '',
    '| when | what | why |',
    '|---|---|---|',
    ...state.log.toReversed().map((e) => `| ${formatInstant(e.at)} | ${e.what} | ${e.why} |`),
  ].join('\n');
}

/** One sentence: what is being waited for. */
export function sentence(state: SubscriptionState): string {
  if (state.openAttempt && state.openAttempt.lookups > 0) {
    return 'a payment was sent and its outcome is not known yet; the gateway is asked until it is';
  }
  const nextAt = nextPaymentAt(state);
  const when = nextAt === null ? '' : formatInstant(nextAt);
  const cycle = state.cyclesCharged + 1;
  const amount = formatAmount(
    state.owed?.amountMinor ?? cycleAmountMinor(state.terms, cycle),
    state.terms.currency,
  );
  switch (state.status) {
    case 'CREATED':
      return `waiting for the payer until ${formatInstant(state.checkoutExpiresAt)}`;
    case 'TRIALING':
      return `in trial; ${amount} on ${when}`;
    case 'ACTIVE':
      return `cycle ${cycle}, ${amount}, on ${when}`;
    case 'UNPAID':
      return `cycle ${cycle}, ${amount}, was declined (${state.owed?.lastDeclineCode ?? 'unknown'}); ${
        nextAt === null ? 'no automatic retry is planned' : `next try on ${when}`
      }`;
    case 'PAUSED':
      return 'nothing is charged until it is unpaused';
    case 'ENDED':
      return `over (${state.endReason ?? 'ended'})`;
  }
}
