import { formatInstant } from '../calendar.ts';
import { formatAmount } from '../money.ts';
import { isAuthentication } from './authentication.ts';
import { cancelAt, cycleAmountMinor, nextPaymentAt, isDunned, resumeAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** A signal that was refused, because its argument is invalid or the status does not allow it. */
export interface RefusedSignal {
  readonly signal: string;
  readonly reason: string;
  readonly at: number;
}

/** Problems that an operator must know of and that the state does not contain. */
export interface Trouble {
  /** The latest refused signal. */
  readonly refused: RefusedSignal | null;
  /** Why the workflow does nothing until an operator repairs the row; null if the workflow runs normally. */
  readonly heldBecause: string | null;
}

/**
 * Returns the state in Markdown, without personal data. The Temporal Web UI shows the text as the workflow's
 * current details.
 */
export function describe(
  state: SubscriptionState,
  { refused, heldBecause }: Trouble = { refused: null, heldBecause: null },
): string {
  const { terms } = state;
  const every =
    terms.intervalCount === 1 ? terms.interval : `${terms.intervalCount} ${terms.interval}s`;
  const paragraphs = [
    `**${state.status}**: ${sentence(state)}.`,
    `${formatAmount(terms.amountMinor, terms.currency)} every ${every.toLowerCase()}, ` +
      `${state.cyclesCharged} of ${terms.cycleCount} cycles paid.`,
  ];
  if (state.cooldownUntilAt !== null) {
    paragraphs.push(`Manual retry possible again from ${toMinute(state.cooldownUntilAt)}.`);
  }
  if (heldBecause !== null) {
    paragraphs.unshift(`**Held**: ${heldBecause}. Repair the row, then send the signal \`poke\`.`);
  }
  if (refused) {
    const reason = refused.reason.replace(/\.$/, '');
    paragraphs.push(`Refused signal \`${refused.signal}\` on ${toMinute(refused.at)}: ${reason}.`);
  }
  if (state.testClockId !== null) paragraphs.push(`On test clock \`${state.testClockId}\`.`);
  const rows = state.log.toReversed().map((e) => `| ${toMinute(e.at)} | ${e.what} | ${e.why} |`);
  return [...paragraphs, ['| when | what | why |', '|---|---|---|', ...rows].join('\n')].join(
    '\n\n',
  );
}

/** Returns, for example, `2027-06-03 00:00 UTC`. */
function toMinute(at: number): string {
  return `${formatInstant(at).slice(0, 16).replace('T', ' ')} UTC`;
}

function sentence(state: SubscriptionState): string {
  if (state.openAttempt?.reviewReason !== undefined) {
    return (
      `**a person has to settle a payment** (${state.openAttempt.reviewReason}): ` +
      '`npm run review -- list`; until then the gateway is asked once a day'
    );
  }
  if (state.openAttempt && isAuthentication(state.openAttempt)) {
    return (
      'the payer was asked to confirm a payment with the bank; ' +
      'if nothing happens, the payment is withdrawn 22 minutes after it was sent'
    );
  }
  if (state.openAttempt && state.openAttempt.lookups > 0) {
    return 'a payment was sent and its outcome is not known yet; the gateway is asked until it is known';
  }
  const endAt = cancelAt(state);
  if (endAt !== null) return `cancelled; nothing is charged, and it ends on ${toMinute(endAt)}`;
  const pauseEndAt = resumeAt(state);
  const nextAt = nextPaymentAt(state);
  const when = nextAt === null ? '' : toMinute(nextAt);
  const cycle = state.cyclesCharged + 1;
  const amount = formatAmount(
    state.owed?.amountMinor ?? cycleAmountMinor(state.terms, cycle),
    state.terms.currency,
  );
  // The sentence about a declined cycle is the same in TRIALING, ACTIVE and UNPAID.
  switch (isDunned(state) ? 'UNPAID' : state.status) {
    case 'CREATED':
      return `waiting for the payer until ${toMinute(state.checkoutExpiresAt)}`;
    case 'TRIALING':
      return `in its trial; the first charge is ${amount} on ${when}`;
    case 'ACTIVE':
      return `the next charge is cycle ${cycle}, ${amount} on ${when}`;
    case 'UNPAID':
      return `cycle ${cycle}, ${amount}, was declined (${state.owed?.lastDeclineCode ?? 'unknown'}); ${
        nextAt === null ? 'no automatic retry is planned' : `the next retry is on ${when}`
      }`;
    case 'PAUSED':
      return pauseEndAt === null
        ? 'nothing is charged until it is unpaused'
        : `nothing is charged until it is unpaused, or until ${toMinute(pauseEndAt)}`;
    case 'ENDED':
      return `ended (${state.endReason ?? 'no reason recorded'})`;
  }
}
