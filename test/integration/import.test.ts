import { readFileSync, symlinkSync } from 'node:fs';
import { eq, like } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { paymentMethods } from '../../db/schema/customers.ts';
import { outboxEvents } from '../../db/schema/webhooks.ts';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { subscriptionImports, subscriptions } from '../../db/schema/subscriptions.ts';
import { jitterOf } from '../../domain/delays.ts';
import type { PaymentGateway } from '../../gateways/port.ts';
import { nextPaymentAt } from '../../domain/subscription/state.ts';
import { faultControl } from '../../tools/embedded/control.ts';
import type { ImportResult } from '../../cli/import/run.ts';
import { createFaultProxy } from '../../tools/fault-proxy/proxy.ts';
import { onDevServer } from '../support/environment.ts';
import { findings } from '../support/findings.ts';
import { gate } from '../support/gate.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { importsIn, LINE } from '../support/imports.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const test = onDevServer.extend('imports', { scope: 'file' }, async ({ env }, { onCleanup }) => {
  const imports = importsIn(env);
  onCleanup(() => imports.close());
  return imports;
});

const KEY = 'control-key-of-the-import-tests-0001';

/** Adds a fault for the look-ups of cards. */
const addFault = (proxyUrl: string, fault: object) =>
  faultControl(proxyUrl, KEY).addFault({ method: 'GET', path: '/v1/methods', ...fault });

const at = (text: string): number => Date.parse(text);

/** Sequence and type of each event of a subscription, oldest first. */
async function eventsOf(env: TestEnvironment, subscriptionId: string): Promise<string[]> {
  const rows = await env.db
    .select({ type: outboxEvents.type, sequence: outboxEvents.sequence })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, subscriptionId))
    .orderBy(outboxEvents.sequence);
  return rows.map(({ type, sequence }) => `${sequence} ${type}`);
}

describe('a dry run of an import', () => {
  test('writes nothing, and reports each line and the charges of each month [D-05]', async ({
    env,
    imports,
  }) => {
    const pays = await imports.sandboxMethod();
    const gone = await imports.sandboxMethod();
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    await env.db
      .update(paymentMethods)
      .set({ gatewayMethodId: gone, status: 'DELETED' })
      .where(eq(paymentMethods.id, (await env.state(ref)).paymentMethodId ?? ''));
    const before = await imports.countRows();
    const nextPaymentDate = at('2027-01-31T10:00:00Z');
    const result = await imports.run(
      [
        { ...LINE, importId: 'a', nextPaymentDate, gatewayMethodId: pays },
        '',
        { ...LINE, importId: 'b', nextPaymentDate, gatewayMethodId: 'pm_nobody' },
        { ...LINE, importId: 'c', nextPaymentDate, gatewayMethodId: pays, cyclesPaid: 3 },
        '{"importId":',
        { ...LINE, importId: 'a', nextPaymentDate, gatewayMethodId: pays },
        {
          ...LINE,
          importId: 'd',
          nextPaymentDate: at('2027-01-19T12:00:00Z'),
          gatewayMethodId: pays,
        },
        {
          ...LINE,
          importId: 'e',
          currency: 'JPY',
          amount: 500,
          interval: 'WEEK',
          cycleCount: 3,
          cyclesCharged: 0,
          status: 'TRIALING',
          nextPaymentDate: at('2035-01-20T12:00:00Z'),
          gatewayMethodId: pays,
        },
        {
          ...LINE,
          importId: 'f',
          currency: 'JPY',
          amount: 500,
          interval: 'WEEK',
          cycleCount: 3,
          cyclesCharged: 0,
          status: 'TRIALING',
          nextPaymentDate: at('2027-01-20T12:00:00Z'),
          gatewayMethodId: pays,
        },
        { ...LINE, importId: 'c', nextPaymentDate, gatewayMethodId: pays },
        { ...LINE, importId: 'g', nextPaymentDate, gatewayMethodId: gone },
      ],
      { now: () => at('2027-01-20T00:00:00Z') },
    );
    expect(await imports.countRows()).toEqual(before);
    const card = { brand: 'visa', lastFourDigit: '4242' };
    const ok = { result: 'ok', card };
    const yen = { amount: 500, currency: 'JPY', remainingCycleCount: 3 };
    const first = '2027-01-31T10:00:00.000Z';
    expect(result.report).toEqual([
      { line: 1, importId: 'a', ...ok, ...of(1_999, 7), firstPaymentDate: first },
      wrong(3, 'b', 'gatewayMethodId: sandbox has no card pm_nobody'),
      wrong(4, 'c', 'cyclesPaid: is not a field of an import'),
      wrong(5, null, 'is not valid JSON'),
      wrong(6, 'a', 'importId: line 1 has the same id'),
      wrong(
        7,
        'd',
        'nextPaymentDate: 2027-01-19T12:00:00.000Z is not in the future; ' +
          'currentPeriodEnd: 2027-01-19T12:00:00.000Z is not in the future',
      ),
      {
        line: 8,
        importId: 'e',
        ...ok,
        ...yen,
        firstPaymentDate: '2035-01-20T12:00:00.000Z',
        warning: 'the card expires before the first payment',
      },
      { line: 9, importId: 'f', ...ok, ...yen, firstPaymentDate: '2027-01-20T12:00:00.000Z' },
      wrong(10, 'c', 'importId: line 4 has the same id'),
      wrong(11, 'g', 'the payment method is DELETED here'),
    ]);
    expect(result.lines).toEqual({ ok: 3, imported: 0, already_imported: 0, problem: 7 });
    expect(result.totals).toEqual([
      { month: '2027-01', currency: 'JPY', amountMinor: 1_000n, charges: 2 },
      { month: '2027-02', currency: 'JPY', amountMinor: 500n, charges: 1 },
      { month: '2027-01', currency: 'USD', amountMinor: 1_999n, charges: 1 },
      { month: '2027-02', currency: 'USD', amountMinor: 1_999n, charges: 1 },
      { month: '2027-03', currency: 'USD', amountMinor: 1_999n, charges: 1 },
      { month: '2027-04', currency: 'USD', amountMinor: 1_999n, charges: 1 },
    ]);
  });
});

const of = (amount: number, remainingCycleCount: number) => ({
  amount,
  currency: 'USD',
  remainingCycleCount,
});
const wrong = (line: number, importId: string | null, problem: string) => ({
  line,
  importId,
  result: 'problem',
  problem,
});

describe('an imported subscription', () => {
  test('is charged once on its date with the imported method, and then ends [D-§4]', async ({
    env,
    imports,
  }) => {
    const gatewayMethodId = await imports.sandboxMethod();
    // The import's clock stands 1 ms before the payment date, which may be past in real time on a slow machine.
    const nextPaymentDate = Date.now() + 2_000;
    const now = () => nextPaymentDate - 1;
    await env.stopWorkers();
    const line = {
      ...LINE,
      importId: 'last-cycle',
      cyclesCharged: 11,
      nextPaymentDate,
      gatewayMethodId,
      description: 'Tea of the month',
      metadata: { plan: 'oolong' },
    };
    const { report, notStarted } = await imports.run([line], { commit: true, now });
    expect(notStarted).toBe(0);
    const subscriptionId = report[0]?.subscriptionId ?? '';
    const [row] = await env.db
      .select()
      .from(subscriptions)
      .where(eq(subscriptions.id, subscriptionId));
    expect(row).toMatchObject({
      status: 'ACTIVE',
      cyclesCharged: 11,
      cycleCount: 12,
      description: 'Tea of the month',
      metadata: { plan: 'oolong' },
      customerDetails: LINE.customerDetails,
      wakeAt: nextPaymentDate,
      presentmentCurrency: 'USD',
    });
    expect(await eventsOf(env, subscriptionId)).toEqual([]);
    expect((await findings(env)).wrong).toEqual([]);

    await env.startWorkers();
    const ref = { merchantId: env.merchantId, subscriptionId };
    await expect.poll(() => env.state(ref)).toMatchObject({ status: 'ENDED' });
    expect(await env.book(ref)).toMatchObject([{ outcome: 'succeeded', amountMinor: 1_999 }]);
    expect(await eventsOf(env, subscriptionId)).toEqual([
      '1 intent.created',
      '2 intent.success',
      '3 subscription.cycle_charged',
      '4 subscription.ended',
    ]);
    expect((await findings(env)).wrong).toEqual([]);

    const again = await imports.run([line], { commit: true });
    expect(again.report).toEqual([
      { line: 1, importId: 'last-cycle', result: 'already_imported', subscriptionId },
    ]);
    const changed = await imports.run([{ ...line, amount: 2_999, cycleCount: 13 }], {
      commit: true,
    });
    expect(changed.report).toEqual([
      wrong(
        1,
        'last-cycle',
        `is imported as ${subscriptionId} with other terms: amount was 1999, is 2999; cycleCount was 12, is 13`,
      ),
    ]);
    expect(await env.book(ref)).toHaveLength(1);
  });
});

describe('an import', () => {
  test('reports a line with other terms as a problem also when another import of it ran at the same time [D-21]', async ({
    env,
    imports,
  }) => {
    const bothLookUp = gate();
    let lookUps = 0;
    const gateway: PaymentGateway = {
      ...env.gateway,
      lookupMethod: async (...given) => {
        lookUps += 1;
        if (lookUps === 2) bothLookUp.open();
        await bothLookUp.isOpen;
        return env.gateway.lookupMethod(...given);
      },
    };
    const gatewayMethodId = await imports.sandboxMethod();
    const nextPaymentDate = at('2027-01-31T10:00:00Z');
    const given = { ...LINE, importId: 'twice', nextPaymentDate, gatewayMethodId };
    const both = await Promise.all(
      [1_999, 2_999].map((amount) =>
        imports.run([{ ...given, amount }], { commit: true, gateway }),
      ),
    );
    const reports = both.map(({ report }) => report[0]!);
    expect(reports.filter(({ result }) => result === 'imported')).toHaveLength(1);
    expect(reports.find(({ result }) => result === 'problem')?.problem).toMatch(
      /^is imported as sub_\w+ with other terms: amount/,
    );
  });

  test('is completed by two concurrent repeats after it was killed [D-21]', async ({
    env,
    imports,
  }) => {
    const methods = await Promise.all(Array.from({ length: 12 }, () => imports.sandboxMethod()));
    const lines = Array.from({ length: 120 }, (_, index) => ({
      ...LINE,
      importId: `killed-${index}`,
      nextPaymentDate: at('2100-01-31T10:00:00Z'),
      gatewayMethodId: methods[index % methods.length],
    }));
    const file = imports.write(lines);
    const imported = () =>
      env.db.$count(subscriptionImports, like(subscriptionImports.importId, 'killed-%'));
    const before = await imports.countRows();

    // The gateway answers the look-ups of 30 cards and then no more, so the command cannot end before it is killed.
    const gateway = await createFaultProxy({ targetUrl: env.gatewayPlace.url, controlKey: KEY });
    await addFault(gateway.url, { fault: 'add_headers', headers: { 'x-of': 'test' }, count: 30 });
    await addFault(gateway.url, { fault: 'hang', count: 1_000 });
    const killed = imports.commandAt(gateway.url, env.merchantId, file, '--commit');
    await expect.poll(imported).toBe(30);
    killed.child.kill('SIGKILL');
    expect(await killed.done).toMatchObject({ signal: 'SIGKILL' });
    await gateway.close();
    const done = await imported();
    expect(done).toBe(30);

    const reports = [`${file}.1`, `${file}.2`];
    const runs = reports.map((report) =>
      imports.command(env.merchantId, file, '--commit', '--report', report, '--json'),
    );
    const ended = await Promise.all(runs.map((run) => run.done));
    expect(ended.map(({ code }) => code)).toEqual([0, 0]);
    const counts = ended.map(({ stdout }) => (JSON.parse(stdout) as ImportResult).lines);
    expect(counts.map(({ problem }) => problem)).toEqual([0, 0]);
    expect(counts[0]!.imported + counts[1]!.imported).toBe(120 - done);

    const after = await imports.countRows();
    const added = Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)])
      .filter(([, count]) => count !== 0);
    expect(added).toEqual([
      ['customer', 12],
      // The killed import has a row of its begin, the others also of their end.
      ['operator_action', 5],
      ['payment_method', 12],
      ['subscription', 120],
      ['subscription_entry', 120],
      ['subscription_import', 120],
    ]);
    // The sweep starts the workflows that the killed process has not started.
    await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect((await findings(env)).wrong).toEqual([]);
  });

  test('gives a subscription a jitter within the merchant’s window, without moving its date [D-05]', async ({
    env,
    imports,
  }) => {
    const nextPaymentDate = at('2100-01-31T10:00:00Z');
    const gatewayMethodId = await imports.sandboxMethod();
    const windowMs = 4 * 3_600_000;
    await changeSettings(env.db, env.merchantId, { jitterMs: windowMs });
    const line = { ...LINE, importId: 'jitter', nextPaymentDate, gatewayMethodId };
    const { report } = await imports.run([line], { commit: true });
    await changeSettings(env.db, env.merchantId, { jitterMs: 0 });
    const subscriptionId = report[0]?.subscriptionId ?? '';
    const state = await env.state({ merchantId: env.merchantId, subscriptionId });
    expect(state.jitterMs).toBe(jitterOf(subscriptionId, windowMs));
    expect(nextPaymentAt(state)).toBe(nextPaymentDate);
  });

  test('plans the notices of the next charge, also that its card expires before [D-63]', async ({
    env,
    imports,
  }) => {
    const nextPaymentDate = at('2100-01-31T10:00:00Z');
    const gatewayMethodId = await imports.sandboxMethod();
    const every = { interval: 'YEAR', intervalCount: 1 };
    const line = { ...LINE, ...every, importId: 'noticed', nextPaymentDate, gatewayMethodId };
    const { report } = await imports.run([line], { commit: true });
    const subscriptionId = report[0]?.subscriptionId ?? '';
    const { notices } = await env.state({ merchantId: env.merchantId, subscriptionId });
    expect(notices).toMatchObject({
      chargeAt: nextPaymentDate,
      pending: [
        { notice: 'subscription.renewal_upcoming', dueAt: at('2099-12-22T10:00:00Z') },
        { notice: 'payment_method.expiring', dueAt: at('2100-01-01T10:00:00Z') },
        { notice: 'subscription.renewal_upcoming', dueAt: at('2100-01-21T10:00:00Z') },
      ],
    });
  });

  test('prints its problems, its summary and the next step, and never a stack trace', async ({
    env,
    imports,
  }) => {
    const gatewayMethodId = await imports.sandboxMethod();
    const nextPaymentDate = at('2100-01-31T10:00:00Z');
    const file = imports.write([
      { ...LINE, importId: 'shown', nextPaymentDate, gatewayMethodId },
      { ...LINE, importId: 'refused', nextPaymentDate, gatewayMethodId, amount: 5 },
    ]);
    const checked = await imports.command(env.merchantId, file).done;
    const report = file.replace('.jsonl', '.report.jsonl');
    expect(checked).toMatchObject({
      code: 1,
      stdout: [
        'line 2 (refused): amount: must be at least 101 in USD',
        '1 can be imported, 0 imported earlier, 1 with a problem.',
        `Report: ${report}`,
        'Nothing was written. Import with --commit.',
        '',
      ].join('\n'),
    });
    const imported = await imports.command(env.merchantId, file, '--commit').done;
    expect(imported.stdout).toContain('1 imported, 0 imported earlier, 1 with a problem.');

    const before = readFileSync(file, 'utf8');
    symlinkSync(file, `${file}.link`);
    const replacing = await imports.command(env.merchantId, file, '--report', `${file}.link`).done;
    expect(replacing).toMatchObject({ code: 1, stdout: '' });
    expect(replacing.stderr).toBe('\nfailed: The report would replace the file.\n\n');
    expect(readFileSync(file, 'utf8')).toBe(before);
    const noMerchant = await imports.command('mer_nobody', file).done;
    expect(noMerchant).toMatchObject({ code: 1, stdout: '' });
    expect(noMerchant.stderr).toBe('\nfailed: There is no merchant mer_nobody.\n\n');
  });
});
