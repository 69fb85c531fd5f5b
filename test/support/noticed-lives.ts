import fc from 'fast-check';
import { DEFAULT_NOTICE_RULES, readNoticeRules } from '../../domain/notice-rules.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { DAY, declined, iso, Simulation } from './simulation.ts';
import { weighted } from './weighted.ts';

/** A life under `rules`, 120.00 USD a cycle, whose checkout was completed at `instant`. */
export function noticed(
  instant: string,
  terms: Partial<Terms> = {},
  rules: NoticeRules = DEFAULT_NOTICE_RULES,
): Simulation {
  const life = new Simulation(instant, { interval: 'YEAR', amountMinor: 12_000, ...terms });
  life.noticeRules = rules;
  life.pay();
  return life;
}

/** Each notice: when it was given or missed, its type, and the date and amount of its charge. */
export function noticesOf({ entries }: Simulation): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'notice_given' && entry.kind !== 'notice_missed') return [];
    const { kind, notice, chargeAt, amountMinor } = entry;
    const what = `${kind === 'notice_missed' ? 'missed ' : ''}${notice.replace('subscription.', '')}`;
    return [`${iso(entry.at)} ${what} of ${amountMinor} on ${iso(chargeAt)}`];
  });
}

export const sentAt = ({ sends }: Simulation): (string | null)[] =>
  sends.map((send) => iso(send.at));

type Move =
  | { waitMs: number }
  /** No worker runs for this time. */
  | { outageMs: number }
  | { declines: number }
  | { do: 'pause' | 'newCard' | 'cancelAtPeriodEnd' | 'resume' | 'cancel' | 'retry' }
  | { pauseForMs: number }
  | { unpauseInMs: number }
  | { editInMs: number }
  | { newAmountMinor: number }
  | { every: Pick<Terms, 'interval' | 'intervalCount'> };

export function make(life: Simulation, move: Move): void {
  if ('waitMs' in move) life.runTo(life.now + move.waitMs);
  else if ('outageMs' in move) life.now += move.outageMs;
  else if ('declines' in move)
    life.gives(...Array.from({ length: move.declines }, () => declined()));
  else if ('do' in move) life[move.do]();
  else if ('pauseForMs' in move) life.command('pause', { resumeAt: life.now + move.pauseForMs });
  else if ('unpauseInMs' in move) {
    life.command('unpause', { newNextPaymentAt: life.now + move.unpauseInMs });
  } else if ('editInMs' in move) {
    life.command('edit', { newNextPaymentAt: life.now + move.editInMs });
  } else if ('every' in move) life.command('edit', move.every);
  else life.command('edit', move);
}

const days = (max: number) => fc.integer({ min: 1, max: max * DAY });
const every = fc.constantFrom<Pick<Terms, 'interval' | 'intervalCount'>>(
  { interval: 'MONTH', intervalCount: 1 },
  { interval: 'MONTH', intervalCount: 6 },
  { interval: 'YEAR', intervalCount: 1 },
);
const moves = weighted<Move>(
  [8, days(60).map((waitMs) => ({ waitMs }))],
  [3, days(400).map((waitMs) => ({ waitMs }))],
  [2, days(60).map((outageMs) => ({ outageMs }))],
  [1, fc.integer({ min: 1, max: 6 }).map((declines) => ({ declines }))],
  [
    2,
    fc.constantFrom<Move>(
      { do: 'pause' },
      { do: 'newCard' },
      { do: 'cancelAtPeriodEnd' },
      { do: 'resume' },
      { do: 'resume' },
      { do: 'retry' },
    ),
  ],
  [2, days(90).map((pauseForMs) => ({ pauseForMs }))],
  [3, days(90).map((unpauseInMs) => ({ unpauseInMs }))],
  [3, days(90).map((editInMs) => ({ editInMs }))],
  [3, fc.constantFrom(10_000, 12_000, 15_000).map((newAmountMinor) => ({ newAmountMinor }))],
  [1, every.map((each) => ({ every: each }))],
);

export const lives = fc.record({
  terms: fc.record({
    cycleCount: fc.integer({ min: 2, max: 9 }),
    trial: fc.constantFrom(null, null, { interval: 'DAY' as const, count: 30 }),
    upfrontAmountMinor: fc.constantFrom(null, 15_000),
  }),
  cycle: every,
  sequence: fc.array(moves, { minLength: 1, maxLength: 30, size: 'max' }),
});

export const RULES = readNoticeRules(
  'subscription.renewal_upcoming=12d;subscription.trial_ending=8d;subscription.amount_changing=20d',
) as NoticeRules;
