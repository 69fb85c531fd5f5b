import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import { DEFAULT_NOTICE_RULES, noticeRulesOf } from '../../domain/notice-rules.ts';
import { wakeAt } from '../../domain/subscription/decide.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { lives, make, noticed, noticesOf, RULES, sentAt } from '../support/noticed-lives.ts';
import { at, DAY, expectNothingFurther, iso, Simulation } from '../support/simulation.ts';

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
      heldUntilAt: at('2027-09-11T00:00:00Z'),
    });
    expect(textOf(life.state.latest, life.state.terms).why).toBe(
      'next charge: 120.00 USD on 2027-09-04T00:00:00.000Z; it waits until 2027-09-11T00:00:00.000Z',
    );
    expect([life.nextAt, iso(wakeAt(life.state))]).toEqual(['2027-09-04', '2027-09-11']);
    expect(upcomingCharges(life.state, 1, life.now)[0]).toMatchObject({
      at: at('2027-09-04T00:00:00Z'),
      until: at('2027-09-11T00:00:00Z'),
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

  test('is preceded in any life by a notice of twelve days, or of eight in a trial [D-63]', () => {
    let charged = 0;
    let late = 0;
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
        const unannounced = life.sends.filter(({ trigger, dueAt, at: sendAt }) => {
          if (trigger !== 'scheduled') return false;
          charged += 1;
          late += sendAt > dueAt ? 1 : 0;
          return !given.some(({ notice, chargeAt, at: givenAt }) => {
            const days = notice === 'subscription.trial_ending' ? 8 : 12;
            return chargeAt === dueAt && givenAt + days * DAY <= sendAt;
          });
        });
        expect({
          unannounced,
          state: stateProblem(JSON.parse(JSON.stringify(life.state))),
          fromLedger: ledgerProblems(life.state, life.entries, life.opened),
        }).toEqual({ unannounced: [], state: null, fromLedger: [] });
      }),
      { numRuns: 500 },
    );
    expect(Math.min(charged, late)).toBeGreaterThan(50);
  });
});
