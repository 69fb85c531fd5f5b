import { describe, expect, test } from 'vitest';
import { applyAdoption } from '../../domain/subscription/apply-attempt.ts';
import { derive, stateDifferences } from '../../domain/subscription/ledger.ts';
import { applyNewDetails } from '../../domain/subscription/notes.ts';
import { ledgerProblems } from '../../cli/verify/ledger-check.ts';
import type { RecordedCharge } from '../../cli/verify/ledger-check.ts';
import { at, declined, declines, Simulation, UNKNOWN } from '../support/simulation.ts';

/** Seven cycles with declines, retries, edits, a pause, another card, and a cancellation. */
function lived(): Simulation {
  const life = new Simulation('2027-01-31T12:00:00Z', { cycleCount: 9 });
  life.pay();
  life.gives(...declines(2));
  life.runTo('2027-03-10T00:00:00Z');
  life.edit('2027-04-02T08:00:00Z', { newAmountMinor: 2_500 });
  life.gives(declined('insufficient_funds'));
  life.runTo('2027-04-02T09:00:00Z');
  life.newCard();
  life.runTo('2027-05-05T00:00:00Z');
  life.pause();
  life.runTo('2027-06-01T00:00:00Z');
  life.unpause('2027-06-10T00:00:00Z');
  life.gives(...declines(6));
  life.runTo('2027-06-20T00:00:00Z');
  life.retry();
  life.retry();
  life.runTo('2027-06-21T00:00:00Z');
  life.retry();
  life.gives(UNKNOWN);
  life.runTo('2027-09-01T00:00:00Z');
  life.cancelAtPeriodEnd();
  life.runTo('2028-01-01T00:00:00Z');
  return life;
}

/** A life whose card the network updates. */
class Updated extends Simulation {
  newDetails(): boolean {
    const change = applyNewDetails(this.state, this.now);
    if (change) this.adopt(change);
    return change !== null;
  }
}

/** A life whose rows were restored, after which charges were copied from the gateway's book. */
class Restored extends Simulation {
  book(charge: Parameters<typeof applyAdoption>[1]): void {
    this.adopt(applyAdoption(this.state, charge, this.now, this.now));
  }
}

const problemsOf = (
  life: Simulation,
  entries = life.entries,
  opened: readonly RecordedCharge[] = life.opened,
) => ledgerProblems(life.state, entries, opened);

/** Every path to a whole number in a JSON value. */
function numbersIn(value: unknown, path: string[] = []): string[][] {
  if (typeof value === 'number') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => numbersIn(member, [...path, name]));
}

function altered<Value>(value: Value, path: readonly string[], by: number): Value {
  const copy = structuredClone(value);
  const parent = path
    .slice(0, -1)
    .reduce((part, name) => part[name] as Record<string, unknown>, copy as Record<string, unknown>);
  const last = path.at(-1)!;
  parent[last] = (parent[last] as number) + by;
  return copy;
}

describe('the ledger of a subscription', () => {
  test('leads by the rules to the state of the row and to every charge [ADR 0032]', () => {
    const life = lived();
    expect(life.path).toBe(
      'CREATED > ACTIVE > UNPAID > ACTIVE > UNPAID > ACTIVE > PAUSED > ACTIVE > UNPAID > ACTIVE > ENDED',
    );
    expect(life.entries.map(({ kind }) => kind).join(' ')).toBe(
      'created paid declined declined paid edited declined method_replaced paid paid paused unpaused declined ' +
        'declined declined declined declined manual_retry declined manual_retry paid unanswered paid paid ' +
        'cancellation_planned ended',
    );
    expect(problemsOf(life)).toEqual([]);
  });

  test('leads to the attempts after the bank’s advice and after new details of the card, also in a pause [ADR 0032, D-30]', () => {
    const life = new Updated('2027-01-31T12:00:00Z', { cycleCount: 4 });
    life.pay();
    const advice = { kind: 'not_before', at: at('2027-03-04T12:00:00Z') } as const;
    life.gives({ ...declined(), advice }, declined('expired_card'), declined('expired_card'));
    life.runTo('2027-03-05T00:00:00Z');
    expect(life.newDetails()).toBe(true);
    life.runTo('2027-03-06T00:00:00Z');
    life.pause();
    expect(life.newDetails()).toBe(true);
    expect(life.newDetails()).toBe(false);
    life.unpause('2027-03-10T00:00:00Z');
    life.gives(declined('fraudulent'));
    life.runTo('2027-04-01T00:00:00Z');
    expect(life.newDetails()).toBe(false);
    expect(life.sent).toBe(
      '2027-01-31T12:00 1, 2027-02-28T12:00 2, 2027-03-04T12:00 2 automatic_retry, ' +
        '2027-03-05 2 automatic_retry, 2027-03-10 2',
    );
    expect(life.entries.map(({ kind }) => kind).join(' ')).toBe(
      'created paid declined declined details_updated declined paused details_updated unpaused declined',
    );
    expect(problemsOf(life)).toEqual([]);
  });

  test('leads to the amount, number and date of an adopted charge, which pays the next date of the calendar [ADR 0032, D-39]', () => {
    const life = new Restored('2027-01-31T12:00:00Z', { cycleCount: 9 });
    life.pay();
    life.runTo('2027-02-15T00:00:00Z');
    life.book({
      gatewayKey: 'charge:in_102:3',
      amountMinor: 2_999,
      currency: 'USD',
      dueAt: at('2027-02-10T00:00:00Z'),
    });
    life.runTo('2027-03-01T00:00:00Z');
    expect(life.log.map(({ what, why, actor }) => [what, why, actor])).toEqual([
      ['created', 'the merchant asked for it', 'merchant'],
      ['cycle 1 paid, 19.99 USD', 'the payer gave a card in the checkout (attempt 1)', 'payer'],
      ['cycle 2 adopted, 29.99 USD', "an operator copied it from the gateway's book", 'operator'],
      ['cycle 2 paid, 29.99 USD', 'its date had come (attempt 3)', 'schedule'],
    ]);
    expect(life.sends.map(({ key }) => key)).toEqual(['charge:in_101:1']);
    expect(life.nextAt).toBe('2027-03-31T12:00');
    expect(life.paidUntil).toBe('2027-03-31T12:00');
    expect(problemsOf(life)).toEqual([]);

    // The declined attempts before it were copied, too.
    const [, adopted] = life.opened;
    const declinedBefore = { ...adopted!, attemptNumber: 1, cause: null };
    expect(problemsOf(life, life.entries, [...life.opened, declinedBefore])).toEqual([]);
    const dearer = life.opened.with(1, { ...adopted!, amountMinor: 5_000 });
    expect(problemsOf(life, life.entries, dearer)).toEqual([
      'attempt 3 of in_102 has amountMinor 5000, by the ledger it is 2999',
    ]);
    const entry = life.entries.find(({ kind }) => kind === 'adopted')!;
    for (const path of [['amountMinor'], ['dueAt'], ['cycleNumber']]) {
      const entries = life.entries.with(life.entries.indexOf(entry), altered(entry, path, 1));
      expect([path, problemsOf(life, entries)]).not.toEqual([path, []]);
    }
  });

  test('leads to the period of an adopted charge when an edit moves the dates before its outcome is known [ADR 0032, D-15]', () => {
    const life = new Restored('2027-01-31T12:00:00Z', { cycleCount: 9 });
    life.pay();
    life.gives(UNKNOWN);
    life.runTo('2027-02-15T00:00:00Z');
    life.book({
      gatewayKey: 'charge:in_102:1',
      amountMinor: 1_999,
      currency: 'USD',
      dueAt: at('2027-02-10T00:00:00Z'),
    });
    life.runTo('2027-02-15T00:00:01Z');
    life.edit('2027-03-10T00:00:00Z');
    life.runTo('2027-03-01T00:00:00Z');
    expect(life.nextAt).toBe('2027-03-10');
    expect(life.paidUntil).toBe('2027-03-31T12:00');
    expect(problemsOf(life)).toEqual([]);
  });

  test('leads to the state at any earlier version', () => {
    const life = new Simulation('2027-01-31T12:00:00Z');
    life.pay();
    const { state } = life;
    life.edit('2027-02-10T00:00:00Z', { newAmountMinor: 5_000 });
    life.runTo('2027-03-20T00:00:00Z');
    const [first] = life.opened;
    const opened = [{ ...first!, openedAt: first!.createdAt }];
    const derived = derive(state, life.entries.slice(0, 2), opened);
    expect(stateDifferences(derived.state, state)).toEqual([]);
    expect(derived.state).toMatchObject({ cyclesCharged: 1, terms: { amountMinor: 1_999 } });
  });

  test('disagrees with the row if any number in it is altered, except instants and delays from which no date follows', () => {
    const life = lived();
    const missed = life.entries.flatMap((entry, index) =>
      numbersIn(entry).flatMap((path) => {
        const entries = life.entries.with(index, altered(entry, path, 1));
        const name = `${entry.kind}.${path.join('.')}`;
        return problemsOf(life, entries).length > 0 ? [] : [name];
      }),
    );
    expect([...new Set(missed)].toSorted()).toEqual([
      // The instant of a command or an outcome, where no date follows from it.
      'cancellation_planned.at',
      'declined.at',
      // Delays of retries that were not made.
      'declined.plan.delaysMs.0',
      'declined.plan.delaysMs.1',
      'declined.plan.delaysMs.2',
      'declined.plan.delaysMs.3',
      'edited.at',
      'manual_retry.at',
      'method_replaced.at',
      'paid.at',
      'paused.at',
      'unanswered.at',
      'unpaused.at',
    ]);
  });

  test('disagrees with an attempt of another amount, number, due date or cause, and with a missing attempt', () => {
    const life = lived();
    for (const [index, attempt] of life.opened.entries()) {
      const { createdAt: _, ...facts } = attempt;
      for (const path of numbersIn(facts)) {
        const opened = life.opened.with(index, altered(attempt, path, 60_000));
        expect([path, problemsOf(life, life.entries, opened)]).not.toEqual([path, []]);
      }
      expect(problemsOf(life, life.entries, life.opened.toSpliced(index, 1))).not.toEqual([]);
    }
  });
});
