import { addTrial, cycleAt } from '../../../domain/calendar.ts';
import { cycleAmountMinor, totalAmountMinor } from '../../../domain/subscription/state.ts';
import type { Terms } from '../../../domain/subscription/state.ts';
import type { Language } from '../parts/language.ts';
import type { ListRow, Offer } from '../shared/views.tsx';

const EVERY = {
  DAY: 'everyDay',
  WEEK: 'everyWeek',
  MONTH: 'everyMonth',
  YEAR: 'everyYear',
} as const;
const AFTER_TRIAL = {
  DAY: 'amountOnAfterDays',
  WEEK: 'amountOnAfterWeeks',
  MONTH: 'amountOnAfterMonths',
  YEAR: 'amountOnAfterYears',
} as const;

/** Returns the charges that the payer agrees to by paying at `nowAt`, with dates in UTC. */
export function offerOf({ say, money, date }: Language, terms: Terms, nowAt: number): Offer {
  const regular = money(terms.amountMinor, terms.currency);
  const { trial, cycleCount } = terms;
  const firstAt = trial === null ? nowAt : addTrial(nowAt, trial.interval, trial.count);
  const dateOf = (index: number): string =>
    date(cycleAt(firstAt, terms.interval, terms.intervalCount, index));
  const charges = say(EVERY[terms.interval], { amount: regular, count: terms.intervalCount });
  const today = money(cycleAmountMinor(terms, 1), terms.currency);
  const total = money(totalAmountMinor(terms), terms.currency);
  const payments = say('amountInPayments', {
    amount: total,
    payments: say('payments', { count: cycleCount }),
  });
  const inAll: ListRow = {
    label: say('inAll'),
    text:
      cycleCount === 1
        ? payments
        : say('lastPaymentOn', { payments, date: dateOf(cycleCount - 1) }),
  };

  if (trial !== null) {
    const first = { amount: regular, date: dateOf(0), count: trial.count };
    return {
      heading: say('yourCard'),
      action: say('startTrial'),
      onceEntered: say('trialOnceEntered'),
      lines: [
        { label: say('today'), text: say('nothing') },
        { label: say('thereafter'), text: say(AFTER_TRIAL[trial.interval], first) },
        ...(cycleCount === 1 ? [] : [{ label: say('afterThat'), text: charges }]),
        inAll,
      ],
    };
  }
  const hasUpfrontAmount = cycleAmountMinor(terms, 1) !== terms.amountMinor;
  return {
    action: say('pay', { amount: today }),
    onceEntered: say('chargedOnceEntered', { amount: today }),
    lines: [
      { label: say(hasUpfrontAmount ? 'todayUpfront' : 'today'), text: today },
      ...(cycleCount === 1
        ? []
        : [{ label: say('thereafter'), text: say('fromDate', { charges, date: dateOf(1) }) }]),
      inAll,
    ],
  };
}
