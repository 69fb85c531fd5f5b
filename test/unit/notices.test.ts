import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import {
  DEFAULT_NOTICE_RULES,
  noticeRulesText,
  readNoticeRules,
} from '../../domain/notice-rules.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { decide, wakeAt } from '../../domain/subscription/decide.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import { withdrawExpiring } from '../../domain/subscription/notices.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { at, DAY, declined, expectNothingFurther, iso, Simulation } from '../support/simulation.ts';
import { lives, make, noticed, noticesOf, RULES, sentAt } from '../support/noticed-lives.ts';

describe('the notices of a charge', () => {
  test('of a yearly subscription come 40 and 10 days before each renewal, also of 29 February [D-63]', () => {
    const life = noticed('2028-02-29T00:00:00Z', { cycleCount: 5 });
    life.runTo('2032-03-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2029-01-19 renewal_upcoming of 12000 on 2029-02-28',
      '2029-02-18 renewal_upcoming of 12000 on 2029-02-28',
      '2030-01-19 renewal_upcoming of 12000 on 2030-02-28',
      '2030-02-18 renewal_upcoming of 12000 on 2030-02-28',
      '2031-01-19 renewal_upcoming of 12000 on 2031-02-28',
      '2031-02-18 renewal_upcoming of 12000 on 2031-02-28',
      '2032-01-20 renewal_upcoming of 12000 on 2032-02-29',
      '2032-02-19 renewal_upcoming of 12000 on 2032-02-29',
    ]);
    expect(sentAt(life)).toEqual([
      '2028-02-29',
      '2029-02-28',
      '2030-02-28',
      '2031-02-28',
      '2032-02-29',
    ]);
    expect(life.state).toMatchObject({ status: 'ENDED', notices: null });
    expectNothingFurther(life);
  });

  test.each([
    [
      '2027-01-31T12:00:00Z',
      [
        '2027-06-21T12:00 renewal_upcoming of 12000 on 2027-07-31T12:00',
        '2027-07-21T12:00 renewal_upcoming of 12000 on 2027-07-31T12:00',
        '2027-12-22T12:00 renewal_upcoming of 12000 on 2028-01-31T12:00',
        '2028-01-21T12:00 renewal_upcoming of 12000 on 2028-01-31T12:00',
      ],
    ],
    [
      '2027-08-31T00:00:00Z',
      [
        '2028-01-20 renewal_upcoming of 12000 on 2028-02-29',
        '2028-02-19 renewal_upcoming of 12000 on 2028-02-29',
        '2028-07-22 renewal_upcoming of 12000 on 2028-08-31',
        '2028-08-21 renewal_upcoming of 12000 on 2028-08-31',
      ],
    ],
  ])('of a half-yearly subscription of %s follow its calendar [D-63]', (instant, notices) => {
    const life = noticed(instant, { interval: 'MONTH', intervalCount: 6 });
    life.runTo(at(instant) + 370 * DAY);
    expect(noticesOf(life)).toEqual(notices);
    expectNothingFurther(life);
  });

  test.each([
    { interval: 'MONTH', intervalCount: 5 },
    { interval: 'DAY', intervalCount: 179 },
  ] as const)('do not exist for a cycle of %o, whose state stays the same [D-63]', (terms) => {
    const life = noticed('2027-01-31T00:00:00Z', terms);
    expect(life.state).not.toHaveProperty('notices');
    life.runTo('2029-01-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([]);
    expect(life.state).not.toHaveProperty('notices');
  });

  test.each([
    [8, 'DAY', '2027-03-09', []],
    [9, 'DAY', '2027-03-10', ['2027-03-02 trial_ending of 1999 on 2027-03-10']],
    [1, 'MONTH', '2027-04-01', ['2027-03-24 trial_ending of 1999 on 2027-04-01']],
  ] as const)(
    'of a trial of %i %s come 8 days before its end if this is after its begin [D-63]',
    (count, interval, end, notices) => {
      const trial = { interval, count };
      const life = noticed('2027-03-01T00:00:00Z', {
        interval: 'MONTH',
        amountMinor: 1_999,
        trial,
      });
      expect(life.paidUntil).toBe(end);
      life.runTo('2027-12-01T00:00:00Z');
      expect(noticesOf(life)).toEqual(notices);
      expect(life.state.status).toBe('ENDED');
    },
  );

  test('of a monthly subscription come once a year if the merchant wants this, before the first renewal of each [D-63]', () => {
    const rules = readNoticeRules(
      'subscription.renewal_upcoming:180d=10d;subscription.renewal_upcoming:yearly=30d',
    ) as NoticeRules;
    const life = noticed('2027-01-31T10:00:00Z', { interval: 'MONTH', cycleCount: 26 }, rules);
    life.runTo('2029-03-31T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-01-01T10:00 renewal_upcoming of 12000 on 2028-01-31T10:00',
      '2029-01-01T10:00 renewal_upcoming of 12000 on 2029-01-31T10:00',
    ]);
    expect(life.sends).toHaveLength(26);
    expectNothingFurther(life);
    // 30 days before 1 March, the charge was not the next one yet.
    const inMarch = noticed('2027-03-01T10:00:00Z', { interval: 'MONTH', cycleCount: 14 }, rules);
    inMarch.runTo('2028-04-02T00:00:00Z');
    expect(noticesOf(inMarch)).toEqual([
      '2028-02-01T10:00 renewal_upcoming of 12000 on 2028-03-01T10:00',
    ]);
    // The first anniversary falls into a pause; the date after it is moved once more.
    const paused = noticed('2027-01-15T10:00:00Z', { interval: 'MONTH', cycleCount: 14 }, rules);
    paused.runTo('2027-12-10T00:00:00Z');
    paused.pause();
    paused.runTo('2028-02-20T00:00:00Z');
    paused.unpause('2028-03-25T10:00:00Z');
    paused.runTo('2028-03-01T00:00:00Z');
    paused.edit('2028-04-10T10:00:00Z');
    paused.runTo('2028-06-01T00:00:00Z');
    expect(noticesOf(paused)).toEqual([
      '2028-02-24T10:00 renewal_upcoming of 12000 on 2028-03-25T10:00',
    ]);
    const twice = readNoticeRules('subscription.renewal_upcoming:yearly=20d,10d') as NoticeRules;
    const reminded = noticed('2027-01-31T10:00:00Z', { interval: 'MONTH', cycleCount: 14 }, twice);
    reminded.runTo('2028-01-15T00:00:00Z');
    reminded.newCard();
    reminded.runTo('2028-04-01T00:00:00Z');
    expect(noticesOf(reminded)).toEqual([
      '2028-01-11T10:00 renewal_upcoming of 12000 on 2028-01-31T10:00',
      '2028-01-21T10:00 renewal_upcoming of 12000 on 2028-01-31T10:00',
    ]);
    const yearly = noticed('2027-01-31T10:00:00Z', { cycleCount: 2 }, rules);
    yearly.runTo('2028-02-01T00:00:00Z');
    expect(noticesOf(yearly)).toEqual([
      '2028-01-21T10:00 renewal_upcoming of 12000 on 2028-01-31T10:00',
    ]);
  });

  test('move with an edit of the date; what was given for the former date is not given again [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    life.runTo('2028-05-10T00:00:00Z');
    life.edit('2028-07-01T00:00:00Z');
    life.runTo('2028-05-25T00:00:00Z');
    life.edit('2028-06-15T00:00:00Z');
    life.runTo('2028-06-16T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2028-05-22 renewal_upcoming of 12000 on 2028-07-01',
      '2028-06-05 renewal_upcoming of 12000 on 2028-06-15',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15']);
  });

  test('tell of a raised amount 20 days before the charge, or at once; each amount once [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    life.runTo('2028-05-01T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    life.runTo('2028-06-01T00:00:00Z');
    life.command('edit', { newAmountMinor: 15_000 });
    life.runTo('2028-06-02T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    life.runTo('2028-06-03T00:00:00Z');
    life.command('edit', { newAmountMinor: 15_000 });
    life.runTo('2028-06-04T00:00:00Z');
    life.command('edit', { newCycleCount: 4 });
    life.runTo('2029-06-01T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 13000 on 2028-06-15',
      '2028-05-26 amount_changing of 13000 on 2028-06-15',
      '2028-06-01 amount_changing of 15000 on 2028-06-15',
      '2028-06-05 renewal_upcoming of 15000 on 2028-06-15',
      '2029-05-06 renewal_upcoming of 15000 on 2029-06-15',
    ]);
    // The paid amount is the one that the payer knows now.
    expect(life.state.raised).toBeUndefined();
    life.command('edit', { newAmountMinor: 14_000 });
    life.runTo('2029-06-16T00:00:00Z');
    expect(noticesOf(life).slice(5)).toEqual([
      '2029-06-05 renewal_upcoming of 14000 on 2029-06-15',
    ]);
  });

  test('are withdrawn by a pause, and planned again for what is still to come [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    life.runTo('2028-06-01T00:00:00Z');
    life.pause();
    expect([life.state.notices, wakeAt(life.state)]).toEqual([null, null]);
    life.runTo('2028-06-08T00:00:00Z');
    life.unpause('2028-06-15T00:00:00Z');
    life.runTo('2029-05-10T00:00:00Z');
    // The pause ends with a charge.
    life.pause('2029-08-20T00:00:00Z');
    life.runTo('2029-08-21T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2029-05-06 renewal_upcoming of 12000 on 2029-06-15',
      '2029-07-11 renewal_upcoming of 12000 on 2029-08-20',
      '2029-08-10 renewal_upcoming of 12000 on 2029-08-20',
    ]);
    expect(sentAt(life)).toEqual(['2027-06-15', '2028-06-15', '2029-08-20']);
  });

  test('are withdrawn by a cancellation, and planned again when it is withdrawn [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    life.cancelAtPeriodEnd();
    life.runTo('2028-05-20T00:00:00Z');
    expect(noticesOf(life)).toEqual([]);
    life.resume();
    life.runTo('2028-06-10T00:00:00Z');
    expect(noticesOf(life)).toEqual(['2028-06-05 renewal_upcoming of 12000 on 2028-06-15']);
    life.runTo('2029-05-07T00:00:00Z');
    life.cancel();
    expectNothingFurther(life);
    expect(noticesOf(life).slice(1)).toEqual([
      '2029-05-06 renewal_upcoming of 12000 on 2029-06-15',
    ]);
  });

  test('of a charge that is not the next one any more are not due, although they are planned [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    expect(iso(wakeAt(life.state))).toBe('2028-05-06');
    expect(decide(life.state, life.now, life.now)).toMatchObject({
      reason: 'notice subscription.renewal_upcoming of cycle 2 (120.00 USD)',
    });
    // As a process records it that plans no notices.
    const cancelled = { ...life.state, cancelAtPeriodEnd: true };
    expect(iso(wakeAt(cancelled))).toBe('2028-06-15');
    const terms = { ...life.state.terms, amountMinor: 13_000 };
    expect(iso(wakeAt({ ...life.state, terms }))).toBe('2028-06-15');
  });

  test('do not exist while a declined cycle is retried [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z', { cycleCount: 4 });
    life.gives(...Array.from({ length: 5 }, () => declined()));
    life.runTo('2028-06-20T00:00:00Z');
    expect(life.state).toMatchObject({ status: 'UNPAID', notices: null });
    life.newCard();
    life.runTo('2029-05-07T00:00:00Z');
    expect(noticesOf(life)).toEqual([
      '2028-05-06 renewal_upcoming of 12000 on 2028-06-15',
      '2028-06-05 renewal_upcoming of 12000 on 2028-06-15',
      '2029-05-06 renewal_upcoming of 12000 on 2029-06-15',
    ]);
  });

  test('that an outage has missed are given once, late, while the charge is still to come [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    const before = life.events.length;
    // No worker runs until then.
    life.now = at('2028-06-07T12:00:00Z');
    life.runTo('2028-06-14T00:00:00Z');
    expect(noticesOf(life)).toEqual(['2028-06-07T12:00 renewal_upcoming of 12000 on 2028-06-15']);
    expect(life.events.slice(before)).toEqual(['subscription.renewal_upcoming']);
    expect(life.state.latest).toMatchObject({
      dueAt: at('2028-06-05T00:00:00Z'),
      missedAt: [at('2028-05-06T00:00:00Z')],
    });
    expect(textOf(life.state.latest, life.state.terms)).toEqual({
      what: 'notice given: subscription.renewal_upcoming',
      why:
        'next charge: 120.00 USD on 2028-06-15T00:00:00.000Z; it had been due on 2028-05-06T00:00:00.000Z ' +
        'and 2028-06-05T00:00:00.000Z',
    });
  });

  test('that an outage has missed until the charge are only recorded [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z');
    const before = life.events.length;
    life.now = at('2028-06-20T00:00:00Z');
    life.runTo('2028-06-20T00:00:00Z');
    expect(noticesOf(life)).toEqual(['2028-06-20 missed renewal_upcoming of 12000 on 2028-06-15']);
    expect(life.events.slice(before)).toEqual(['intent.success', 'subscription.cycle_charged']);
    const missed = life.entries.find(({ kind }) => kind === 'notice_missed');
    expect(missed && textOf(missed, life.state.terms)).toEqual({
      what: 'notice missed: subscription.renewal_upcoming',
      why:
        'the charge was due first: 120.00 USD on 2028-06-15T00:00:00.000Z; it had been due on ' +
        '2028-05-06T00:00:00.000Z and 2028-06-05T00:00:00.000Z',
    });
    expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
  });

  test('tell of a card that expires before the charge, 30 days before it, unless it is replaced or has new details [D-63]', () => {
    const expiring = (until: string, then: (life: Simulation) => void = () => undefined) => {
      const life = new Simulation('2027-06-15T00:00:00Z', { interval: 'YEAR', cycleCount: 2 });
      life.noticeRules = DEFAULT_NOTICE_RULES;
      life.cardExpiresAt = at(until);
      life.pay();
      life.runTo('2028-05-10T00:00:00Z');
      then(life);
      life.runTo('2028-06-20T00:00:00Z');
      expect(ledgerProblems(life.state, life.entries, life.opened)).toEqual([]);
      return noticesOf(life).slice(1);
    };
    const renewal = '2028-06-05 renewal_upcoming of 1999 on 2028-06-15';
    const told = ['2028-05-16 payment_method.expiring of 1999 on 2028-06-15', renewal];
    expect(expiring('2028-06-01T00:00:00Z')).toEqual(told);
    expect(expiring('2028-07-01T00:00:00Z')).toEqual([renewal]);
    const replace = (until: string) => (life: Simulation) => {
      life.cardExpiresAt = at(until);
      life.newCard();
    };
    expect(expiring('2028-06-01T00:00:00Z', replace('2031-01-01T00:00:00Z'))).toEqual([renewal]);
    expect(expiring('2028-07-01T00:00:00Z', replace('2028-06-01T00:00:00Z'))).toEqual(told);
    const update = (until: string) => (life: Simulation) => {
      const change = withdrawExpiring(life.state, at(until), life.now);
      if (!change) return;
      life.state = change.state;
      life.entries.push(life.state.latest);
    };
    expect(expiring('2028-06-01T00:00:00Z', update('2031-01-01T00:00:00Z'))).toEqual([renewal]);
    expect(expiring('2028-06-01T00:00:00Z', update('2028-06-01T00:00:00Z'))).toEqual(told);
  });

  test('are in the list of the next charges, the planned ones first [D-63]', () => {
    const life = noticed('2027-06-15T00:00:00Z', { cycleCount: 3 });
    const shown = () =>
      upcomingCharges(life.state, 5, life.now, DEFAULT_NOTICE_RULES).map((charge) => [
        iso(charge.at),
        ...charge.notices.map(
          ({ notice, dueAt }) => `${notice.replace('subscription.', '')} ${iso(dueAt)}`,
        ),
      ]);
    expect(shown()).toEqual([
      ['2028-06-15', 'renewal_upcoming 2028-05-06', 'renewal_upcoming 2028-06-05'],
      ['2029-06-15', 'renewal_upcoming 2029-05-06', 'renewal_upcoming 2029-06-05'],
    ]);
    life.runTo('2028-05-07T00:00:00Z');
    life.command('edit', { newAmountMinor: 13_000 });
    expect(shown()).toEqual([
      ['2028-06-15', 'amount_changing 2028-05-26', 'renewal_upcoming 2028-06-05'],
      ['2029-06-15', 'renewal_upcoming 2029-05-06', 'renewal_upcoming 2029-06-05'],
    ]);
    life.pause('2028-09-01T00:00:00Z');
    expect(shown()).toEqual([
      [
        '2028-09-01',
        'renewal_upcoming 2028-07-23',
        'amount_changing 2028-08-12',
        'renewal_upcoming 2028-08-22',
      ],
      ['2029-09-01', 'renewal_upcoming 2029-07-23', 'renewal_upcoming 2029-08-22'],
    ]);
  });
});

describe('the rules of notices', () => {
  test.each([
    ['off', []],
    ['default', DEFAULT_NOTICE_RULES],
    [
      'subscription.renewal_upcoming=3d;subscription.renewal_upcoming:365d=10d,40d,10d',
      [
        { notice: 'subscription.renewal_upcoming', cycleDays: 0, daysBefore: [3] },
        { notice: 'subscription.renewal_upcoming', cycleDays: 365, daysBefore: [40, 10] },
      ],
    ],
    [
      'subscription.renewal_upcoming:yearly=30d',
      [
        {
          notice: 'subscription.renewal_upcoming',
          cycleDays: 0,
          isYearly: true,
          daysBefore: [30],
        },
      ],
    ],
  ])('are read from %s [D-63]', (text, rules) => {
    expect(readNoticeRules(text)).toEqual(rules);
    expect(readNoticeRules(noticeRulesText(rules as NoticeRules))).toEqual(rules);
  });

  test.each([
    [
      'soon',
      '"soon" is not off, default or rules like subscription.renewal_upcoming:180d=40d,10d;subscription.trial_ending=8d;subscription.amount_changing:180d=20d;payment_method.expiring:180d=30d',
    ],
    [
      'subscription.ended=3d',
      '"subscription.ended" is not one of subscription.renewal_upcoming, subscription.trial_ending, subscription.amount_changing, payment_method.expiring',
    ],
    [
      'subscription.trial_ending=0d',
      '"subscription.trial_ending=0d": a rule has at most 5 notices, from 1d to 366d before the charge',
    ],
    [
      'subscription.trial_ending:4000d=8d',
      '"subscription.trial_ending:4000d=8d": a cycle has at most 3650 days',
    ],
    [
      'subscription.trial_ending=8d; subscription.trial_ending=9d',
      '"subscription.trial_ending=9d" repeats another rule',
    ],
    [
      'subscription.trial_ending:yearly=8d',
      '"subscription.trial_ending:yearly=8d": only subscription.renewal_upcoming can be yearly',
    ],
  ])('are not read from %s [D-63]', (text, problem) => {
    expect(readNoticeRules(text)).toBe(problem);
  });

  test('of the longest cycle that a billing cycle reaches count [D-63]', () => {
    const rules = readNoticeRules(
      'subscription.renewal_upcoming=3d;subscription.renewal_upcoming:365d=40d',
    ) as NoticeRules;
    const life = noticed('2027-06-15T00:00:00Z', { cycleCount: 2 }, rules);
    life.runTo('2028-06-20T00:00:00Z');
    expect(noticesOf(life)).toEqual(['2028-05-06 renewal_upcoming of 12000 on 2028-06-15']);
    const monthly = noticed('2027-06-15T00:00:00Z', { interval: 'MONTH', cycleCount: 2 }, rules);
    monthly.runTo('2027-07-20T00:00:00Z');
    expect(noticesOf(monthly)).toEqual(['2027-07-12 renewal_upcoming of 12000 on 2027-07-15']);
  });
});

/** What may follow a notice before its charge, without which the charge comes. */
const NO_COMMANDS = ['notice_given', 'notice_missed'];

/** A life that compares each notice with the next charge when it is given. */
class Compared extends Simulation {
  readonly wrong: string[] = [];
  protected override adopt(change: Change): void {
    const { state } = this;
    super.adopt(change);
    const { latest, version } = this.state;
    if (latest.version !== version || latest.kind !== 'notice_given') return;
    const [next] = upcomingCharges(state, 1, this.now);
    const isNext = next?.at === latest.chargeAt && next.amountMinor === latest.amountMinor;
    if (!isNext || this.now >= latest.chargeAt) this.wrong.push(JSON.stringify(latest));
  }
}

test('in any life no notice is given twice for a date and an amount, after its charge, or for a charge that does not come [D-63]', () => {
  const seen = { given: 0, missed: 0, charged: 0, raised: 0, inTrial: 0 };
  fc.assert(
    fc.property(fc.noBias(lives), ({ terms, cycle, sequence }) => {
      const life = new Compared('2026-01-31T00:00:00Z', {
        ...cycle,
        ...terms,
        amountMinor: 12_000,
      });
      life.noticeRules = RULES;
      life.pay();
      for (const move of sequence) make(life, move);
      life.runTo(life.now + 800 * DAY);
      const given = life.entries.flatMap((entry) => (entry.kind === 'notice_given' ? [entry] : []));
      const keys = given.map(
        ({ notice, chargeAt, amountMinor }) => `${notice} ${chargeAt} ${amountMinor}`,
      );
      const notCharged = given.filter(({ version, chargeAt, amountMinor }) => {
        const next = life.entries.find(
          (entry) => entry.version > version && !NO_COMMANDS.includes(entry.kind),
        );
        // A command came between, or the charge was made later, after an outage.
        if (!next || (next.kind !== 'paid' && next.kind !== 'declined')) return false;
        seen.charged += 1;
        return !life.sends.some((sent) => sent.at >= chargeAt && sent.amountMinor === amountMinor);
      });
      expect({
        wrong: life.wrong,
        twice: keys.filter((key, n) => keys.indexOf(key) !== n),
        notCharged,
        state: stateProblem(JSON.parse(JSON.stringify(life.state))),
        fromLedger: ledgerProblems(life.state, life.entries, life.opened),
      }).toEqual({ wrong: [], twice: [], notCharged: [], state: null, fromLedger: [] });
      seen.given += given.length;
      seen.missed += life.entries.filter(({ kind }) => kind === 'notice_missed').length;
      seen.raised += keys.filter((key) => key.includes('amount_changing')).length;
      seen.inTrial += keys.filter((key) => key.includes('trial_ending')).length;
    }),
    { numRuns: 1_000 },
  );
  expect(Object.entries(seen).filter(([, count]) => count < 50)).toEqual([]);
});
