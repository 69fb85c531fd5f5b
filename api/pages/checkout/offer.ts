import { addTrial, cycleAt } from '../../../domain/calendar.ts';
import { formatAmount } from '../../../domain/money.ts';
import { cycleAmountMinor } from '../../../domain/subscription/state.ts';
import type { Terms } from '../../../domain/subscription/state.ts';
import type { Offer, OfferLine } from '../shared/views.tsx';

/**
 * Returns the charges that the payer agrees to by paying at `nowAt`, with dates in UTC. Rules: D-05, IF-2.3.
 */
export function offerOf(terms: Terms, nowAt: number): Offer {
  const regular = formatAmount(terms.amountMinor, terms.currency);
  const { trial, cycleCount } = terms;
  const firstAt = trial === null ? nowAt : addTrial(nowAt, trial.interval, trial.count);
  const dateOf = (index: number): string =>
    dateText(cycleAt(firstAt, terms.interval, terms.intervalCount, index));
  const payments = cycleCount === 1 ? '1 payment' : `${cycleCount} payments`;
  const lastOn = cycleCount === 1 ? '' : `, the last on ${dateOf(cycleCount - 1)}`;
  const inAll: OfferLine = { label: 'In all', text: `${payments}${lastOn}` };

  if (trial !== null) {
    return {
      action: 'Start free trial',
      onceEntered:
        'As soon as you have entered it, your free trial starts. Nothing is charged today.',
      lines: [
        { label: 'Today', text: 'Nothing' },
        {
          label: 'Then',
          text: `${regular} on ${dateOf(0)}, after ${lengthText(trial.count, trial.interval)} free`,
        },
        ...(cycleCount === 1
          ? []
          : [{ label: 'After that', text: `${regular} ${everyText(terms)}` }]),
        inAll,
      ],
    };
  }
  const today = formatAmount(cycleAmountMinor(terms, 1), terms.currency);
  return {
    action: `Pay ${today}`,
    onceEntered: `As soon as you have entered it, ${today} is charged.`,
    lines: [
      { label: 'Today', text: today },
      ...(cycleCount === 1
        ? []
        : [{ label: 'Then', text: `${regular} ${everyText(terms)}, from ${dateOf(1)}` }]),
      inAll,
    ],
  };
}

/** Returns, for example, `28 February 2027`. */
export function dateText(at: number): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }).format(at);
}

function everyText({ interval, intervalCount }: Terms): string {
  const unit = interval.toLowerCase();
  return intervalCount === 1 ? `every ${unit}` : `every ${intervalCount} ${unit}s`;
}

function lengthText(count: number, unit: string): string {
  return `${count} ${unit.toLowerCase()}${count === 1 ? '' : 's'}`;
}
