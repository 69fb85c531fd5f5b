import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import { DEFAULT_NOTICE_RULES, noticeRulesOf, readNoticeRules } from '../../domain/notice-rules.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import type { NoticeType } from '../../domain/events.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { LATE_MS } from '../../domain/subscription/charge-time.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { lives, make, noticed, noticesOf, RULES, sentAt } from '../support/noticed-lives.ts';
import { at, DAY, expectNothingFurther, iso, Simulation } from '../support/simulation.ts';

/** The fewest days of `RULES` for a date. */
const DAYS: Readonly<Partial<Record<NoticeType, number>>> = {
  'subscription.trial_ending': 8,
  'subscription.renewal_upcoming': 12,
};

describe('a charge that is not made without notice', () => {
  const strict = (instant: string, terms: Partial<Terms> = {}, rules = DEFAULT_NOTICE_RULES) =>
    noticed(instant, terms, noticeRulesOf({ notices: rules, chargeWithoutNotice: false }));

  test('is made at its date if its notices were punctual [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-07-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2028-06-05 renewal_upcoming of 12000 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
    expectNothingFurther(life);
  });

  test('waits ten days for a notice that an edit of its date made late; the calendar stays [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 3 });
    life.runTo('2027-09-01T00:00:00Z');
    life.edit('2027-09-04T00:00:00Z');
    life.runTo('2027-09-01T00:00:01Z');
    expect(life.state.latest).toMatchObject({
      kind: 'notice_given',
      chargeAt: at('2027-09-04T00:00:00Z'),
      chargeFromAt: at('2027-09-11T00:00:00Z'),
    });
    expect(textOf(life.state.latest, life.state.terms).why).toBe(
      'next charge: 120.00 USD on 2027-09-04T00:00:00.000Z; it waits until 2027-09-11T00:00:00.000Z',
    );
    expect([life.nextAt, iso(wakeAt(life.state))]).toEqual(['2027-09-04', '2027-09-11']);
    expect(upcomingCharges(life.state, 1, life.now)[0]).toMatchObject({
      at: at('2027-09-04T00:00:00Z'),
      untilAt: at('2027-09-11T00:00:00Z'),
    });
    // Another card neither repeats the notice nor shortens the wait.
    life.newCard();
    life.runTo('2027-09-12T00:00:00Z');
    expect(sentAt(life)).toEqual(['2027-06-15', '2027-09-11']);
    expect(life.nextAt).toBe('2028-09-04');
    expect(noticesOf(life)).toHaveLength(1);
    expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
  });

  test('waits for a notice that an outage has delayed until after its date [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.now = at('2028-06-20T00:00:00Z');
    life.runTo('2028-07-15T00:00:00Z');
    expect(noticesOf(life)).toEqual(['2028-06-20 renewal_upcoming of 12000 on 2028-06-15']);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-30']);
    expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
    expectNothingFurther(life);
  });

  test('waits twenty days after an edit that raises its amount [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-06-12T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    life.runTo('2028-08-01T00:00:00Z');
    expect(noticesOf(life).slice(2)).toEqual(['2028-06-12 amount_changing of 13000 on 2028-06-15']);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-07-02']);
    expectNothingFurther(life);
  });

  test('waits in no trial that is shorter than its notice [D-63]', () => {
    const life = strict('2027-03-01T00:00:00Z', {
      interval: 'MONTH',
      cycleCount: 1,
      trial: { interval: 'DAY', count: 5 },
    });
    life.runTo('2027-03-07T00:00:00Z');
    expect([noticesOf(life), sentAt(life)]).toEqual([[], ['2027-03-06']]);
    expectNothingFurther(life);
  });

  test('keeps its wait when it is withdrawn and comes again, and repeats no notice [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-06-12T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    life.runTo('2028-06-13T00:00:00Z');
    life.cancelAtPeriodEnd();
    life.runTo('2028-06-14T00:00:00Z');
    life.resume();
    life.newCard();
    life.runTo('2028-06-14T12:00:00Z');
    life.pause();
    life.unpause('2028-06-15T00:00:00Z');
    life.runTo('2028-08-01T00:00:00Z');
    expect(noticesOf(life).slice(2)).toEqual(['2028-06-12 amount_changing of 13000 on 2028-06-15']);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-07-02']);
    expectNothingFurther(life);
  });

  test('is made at its date if the raise that was told is taken back [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-06-12T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    life.runTo('2028-06-13T00:00:00Z');
    life.command('edit', { newAmountMinor: 12_000 });
    life.runTo('2028-06-16T00:00:00Z');
    expect(noticesOf(life)).toHaveLength(3);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
  });

  test('waits for the notice of a raise that comes while it waits [D-63]', () => {
    const life = strict('2028-02-20T00:00:00Z', {
      cycleCount: 1,
      trial: { interval: 'DAY', count: 14 },
    });
    life.runTo('2028-03-02T00:00:00Z');
    life.edit('2028-03-04T00:00:00Z');
    life.runTo('2028-03-05T00:00:00Z');
    life.command('edit', { newAmountMinor: 20_000 });
    life.runTo('2028-04-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-02-26 trial_ending of 12000 on 2028-03-05',
      '2028-03-02 trial_ending of 12000 on 2028-03-04',
      '2028-03-05 amount_changing of 20000 on 2028-03-04',
    ]);
    expect(sentAt(life)).toEqual(['2028-03-25']);
    expectNothingFurther(life);
  });

  test('does not move by the seconds by which a punctual notice is late [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-06-04T23:59:59Z');
    life.now = at('2028-06-05T00:00:07Z');
    life.runTo('2028-06-16T00:00:00Z');
    expect(noticesOf(life)[1]).toBe('2028-06-05T00:00:07 renewal_upcoming of 12000 on 2028-06-15');
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
  });

  test('does not wait in a cycle that is no longer than the notice [D-63]', () => {
    const life = strict('2028-02-01T00:00:00Z', {
      interval: 'WEEK',
      cycleCount: 2,
      trial: { interval: 'DAY', count: 30 },
    });
    life.runTo('2028-03-01T00:00:00Z');
    life.edit('2028-03-02T00:00:00Z');
    life.runTo('2028-03-20T00:00:00Z');
    expect(sentAt(life)).toEqual(['2028-03-02', '2028-03-09']);
    expectNothingFurther(life);
  });

  test('waits while its card expires, of which the payer is still told [D-63]', () => {
    const life = new Simulation('2027-06-15T00:00:00Z', { interval: 'YEAR', cycleCount: 2 });
    life.noticeRules = noticeRulesOf({ chargeWithoutNotice: false });
    life.cardExpiresAt = at('2028-06-01T00:00:00Z');
    life.pay();
    life.runTo('2028-05-01T00:00:00Z');
    life.now = at('2028-06-20T00:00:00Z');
    life.runTo('2028-07-02T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-06-20 renewal_upcoming of 1999 on 2028-06-15',
      '2028-06-20 payment_method.expiring of 1999 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-30']);
    expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
  });

  test('does not wait again after a change of the setting, if its notice was punctual [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-06-10T00:00:00Z');
    life.noticeRules = noticeRulesOf({ chargeWithoutNotice: false });
    life.runTo('2028-06-14T00:00:00Z');
    life.newCard();
    life.runTo('2028-07-01T00:00:00Z');
    expect(noticesOf(life)).toHaveLength(2);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
  });

  test('waits if the payer was last told of another date [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-05-10T00:00:00Z');
    life.edit('2028-07-01T00:00:00Z');
    life.runTo('2028-06-14T00:00:00Z');
    life.edit('2028-06-15T00:00:00Z');
    life.runTo('2028-07-02T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2028-05-22 renewal_upcoming of 12000 on 2028-07-01',
      '2028-06-14 renewal_upcoming of 12000 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-24']);
  });

  test('waits as long as the rule of its new cycle says [D-63]', () => {
    const rules = readNoticeRules(
      'subscription.renewal_upcoming=3d;subscription.renewal_upcoming:180d=40d,10d',
    ) as NoticeRules;
    const life = strict('2028-05-01T00:00:00Z', { interval: 'MONTH', cycleCount: 3 }, rules);
    life.runTo('2028-06-20T00:00:00Z');
    life.edit('2028-07-01T00:00:00Z');
    life.command('edit', { interval: 'YEAR', intervalCount: 1 });
    life.runTo('2028-07-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-29 renewal_upcoming of 12000 on 2028-06-01',
      '2028-06-21 renewal_upcoming of 12000 on 2028-07-01',
    ]);
    expect(sentAt(life)).toEqual(['2028-05-01', '2028-06-01', '2028-07-01']);
  });

  test('does not wait for a second notice that is late, and its timeline does not say so [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-05-07T00:00:00Z');
    life.now = at('2028-06-12T00:00:00Z');
    life.runTo('2028-06-13T00:00:00Z');
    expect(textOf(life.state.latest, life.state.terms)).toEqual({
      what: 'notice given: subscription.renewal_upcoming',
      why: 'next charge: 120.00 USD on 2028-06-15T00:00:00.000Z; it had been due on 2028-06-05T00:00:00.000Z',
    });
    life.runTo('2028-06-16T00:00:00Z');
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
  });

  test('does not wait if only its second notice was missed, and that one is not given after its date [D-63]', () => {
    const life = strict('2027-06-15T00:00:00Z', { cycleCount: 2 });
    life.runTo('2028-05-07T00:00:00Z');
    life.now = at('2028-06-20T00:00:00Z');
    life.runTo('2028-07-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2028-06-20 missed renewal_upcoming of 12000 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-20']);
    expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
  });

  test('waits for the days of a longer rule, once [D-63]', () => {
    const rules = readNoticeRules(
      'subscription.renewal_upcoming=3d;subscription.renewal_upcoming:180d=40d,10d',
    ) as NoticeRules;
    const life = strict('2028-05-20T00:00:00Z', { interval: 'MONTH', cycleCount: 2 }, rules);
    life.edit('2028-07-01T00:00:00Z');
    life.runTo('2028-06-29T00:00:00Z');
    life.command('edit', { interval: 'YEAR', intervalCount: 1 });
    life.runTo('2028-06-30T00:00:00Z');
    life.newCard();
    life.newCard();
    life.runTo('2028-07-20T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-06-28 renewal_upcoming of 12000 on 2028-07-01',
      '2028-06-29 renewal_upcoming of 12000 on 2028-07-01',
    ]);
    expect(sentAt(life)).toEqual(['2028-05-20', '2028-07-08']);
    expectNothingFurther(life);
  });

  test('waits for its own notice, although another one told that the card expires [D-63]', () => {
    const life = new Simulation('2027-06-15T00:00:00Z', { interval: 'YEAR', cycleCount: 2 });
    life.noticeRules = noticeRulesOf({
      notices: readNoticeRules(
        'subscription.renewal_upcoming=10d;payment_method.expiring=30d',
      ) as NoticeRules,
      chargeWithoutNotice: false,
    });
    life.cardExpiresAt = at('2028-06-01T00:00:00Z');
    life.pay();
    life.runTo('2028-06-01T00:00:00Z');
    life.now = at('2028-06-12T00:00:00Z');
    life.runTo('2028-06-13T00:00:00Z');
    life.newCard();
    life.runTo('2028-07-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-16 payment_method.expiring of 1999 on 2028-06-15',
      '2028-06-12 renewal_upcoming of 1999 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-22']);
    expectNothingFurther(life);
  });

  test('is preceded in any life by a notice of twelve days, or of eight in a trial [D-63]', () => {
    let charged = 0;
    let late = 0;
    let raised = 0;
    fc.assert(
      fc.property(fc.noBias(lives), ({ terms, cycle, sequence }) => {
        const life = new Simulation('2026-01-31T00:00:00Z', { ...cycle, ...terms });
        life.noticeRules = noticeRulesOf({ notices: RULES, chargeWithoutNotice: false });
        life.pay();
        for (const move of sequence) make(life, move);
        life.runTo(life.now + 800 * DAY);
        const given = life.entries.flatMap((entry) =>
          entry.kind === 'notice_given' ? [entry] : [],
        );
        const unannounced = life.sends.filter(({ trigger, dueAt, amountMinor, at: sendAt }) => {
          if (trigger !== 'scheduled') return false;
          charged += 1;
          late += sendAt > dueAt ? 1 : 0;
          const isTold = (isEnough: (entry: (typeof given)[number]) => number | null) =>
            given.some((entry) => {
              const days = entry.chargeAt === dueAt ? isEnough(entry) : null;
              return days !== null && entry.at + days * DAY <= sendAt + LATE_MS;
            });
          const isDateTold = isTold(({ notice }) => DAYS[notice] ?? null);
          const paidBefore = life.sends.filter((sent) => sent.at < sendAt).at(-1);
          const isRaised = paidBefore !== undefined && amountMinor > paidBefore.amountMinor;
          raised += isRaised ? 1 : 0;
          const isRaiseTold = isTold((entry) =>
            entry.notice === 'subscription.amount_changing' && entry.amountMinor === amountMinor
              ? 20
              : null,
          );
          return !isDateTold || (isRaised && !isRaiseTold);
        });
        expect({
          unannounced,
          state: stateProblem(JSON.parse(JSON.stringify(life.state))),
          fromLedger: ledgerProblems(life.state, life.entries, life.opened),
        }).toEqual({ unannounced: [], state: null, fromLedger: [] });
      }),
      { numRuns: 500 },
    );
    expect(Math.min(charged, late, raised)).toBeGreaterThan(50);
  });
});
