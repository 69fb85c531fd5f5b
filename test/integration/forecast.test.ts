import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { and, eq } from 'drizzle-orm';
import { describe, expect, onTestFinished } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { simulateCommand } from '../../cli/simulate/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { paidOnClock, payCheckout } from '../support/pay-checkout.ts';
import { runCommand } from '../support/run-command.ts';

const HOUR = 3_600_000;

describe('npm run simulate', () => {
  test('compares the charges of all running subscriptions under two retry plans, and writes nothing [D-58]', async ({
    env,
  }) => {
    await changeSettings(env.db, env.merchantId, {
      retryPlan: { delaysMs: [4 * HOUR, 20 * HOUR], afterExhausted: 'stay_unpaid' },
    });
    const createdAt = Date.now();
    const refs = [
      await env.create({ createdAt }),
      await env.create({ createdAt, terms: { amountMinor: 5_000 } }),
    ];
    for (const ref of refs) await payCheckout(env, ref);
    const states = await Promise.all(refs.map((ref) => env.state(ref)));
    const file = (name: string) => {
      const path = join(tmpdir(), `${env.merchantId}-${name}`);
      onTestFinished(() => rmSync(path, { force: true }));
      return path;
    };
    const [csv, svg] = [file('forecast.csv'), file('forecast.svg')];
    const simulate = (...args: string[]) =>
      runCommand(simulateCommand, { DATABASE_URL: env.databaseUrl }, [env.merchantId, ...args]);
    const totals = ({ stdout }: { stdout: string }) =>
      stdout
        .trimEnd()
        .split('\n')
        .at(-1)
        ?.split(/\s{2,}/);

    const paid = await simulate('--days', '65', '--declines', '0');
    expect(paid.stdout.split('\n')[0]).toBe(
      '2 running subscriptions, 65 days, 0 % of all attempts declined.',
    );
    expect(totals(paid)).toEqual(['in all', '4', '4', '0', '0', '139.98 USD', '139.98 USD']);

    const fourRetries = '--days 40 --declines 100 --retry-plan 1h,1h,1h,1h'.split(' ');
    const refused = await simulate(...fourRetries, '--csv', csv, '--svg', svg);
    expect(totals(refused)).toEqual(['in all', '6', '10', '6', '10']);
    const lines = readFileSync(csv, 'utf8').trimEnd().split('\n');
    const dueAt = new Date(states[0]?.currentPeriodEndAt ?? 0);
    const after = (hours: number) => new Date(dueAt.getTime() + hours * HOUR).toISOString();
    const id = states[0]?.subscriptionId;
    expect(lines.filter((line) => line.startsWith(`${id},`))).toEqual([
      `${id},2,1,1999,USD,${after(0)},declined,${after(0)},declined`,
      `${id},2,4,1999,USD,,,${after(3)},declined`,
      `${id},2,2,1999,USD,${after(4)},declined,${after(1)},declined`,
      `${id},2,5,1999,USD,,,${after(4)},declined`,
      `${id},2,3,1999,USD,${after(24)},declined,${after(2)},declined`,
    ]);
    expect(readFileSync(svg, 'utf8')).toMatch(/^<svg [^]*<\/svg>\n$/);

    expect(await simulate('--jitter', '2w')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--jitter: "2w" is not auto, 0 or a time like 30m'),
    });
    expect(await simulate('--declines', '101')).toMatchObject({ code: 1 });
    expect(await Promise.all(refs.map((ref) => env.state(ref)))).toEqual(states);
    expect(await Promise.all(refs.map((ref) => env.book(ref)))).toEqual([
      [expect.objectContaining({ amountMinor: 1_999 })],
      [expect.objectContaining({ amountMinor: 5_000 })],
    ]);
  });

  test('counts what the rules of today make of a history that an older version has written [D-30]', async ({
    env,
  }) => {
    const { ref, clock } = await paidOnClock(env, '2027-01-31T12:00:00Z');
    await env.gateway.declineNext({
      subscriptionId: ref.subscriptionId,
      paymentMethodId: null,
      code: 'card_declined',
      count: 2,
      advice: null,
    });
    await env.advance(clock, '2027-03-01T12:00:00Z');
    const ofCycle = (attemptNumber: number) =>
      and(
        eq(paymentAttempts.merchantId, env.merchantId),
        eq(paymentAttempts.attemptNumber, attemptNumber),
        eq(paymentAttempts.state, 'DECLINED'),
      );
    const history = async (...args: string[]) => {
      const command = [env.merchantId, '--history', '90', ...args];
      const { stdout } = await runCommand(
        simulateCommand,
        { DATABASE_URL: env.databaseUrl },
        command,
      );
      return stdout.trimEnd().split('\n');
    };
    const lines = (attempts: number, stop: number, move: number, hold: number) => [
      `${attempts} attempts in the last 90 days. The rules of today`,
      `  stop ${stop}: after a decline, or an advice, that forbids another try`,
      `  move ${move}: the bank advised a later date`,
      `  hold ${hold}: the card had reached its limit of unpaid attempts`,
    ];
    // Other subscriptions of the merchant have one paid attempt each.
    expect(await history()).toEqual(lines(6, 0, 0, 0));
    await env.db.update(paymentAttempts).set({ errorCode: 'expired_card' }).where(ofCycle(1));
    const advice = { kind: 'not_before', at: Date.parse('2027-03-10T12:00:00Z') } as const;
    await env.db.update(paymentAttempts).set({ advice }).where(ofCycle(2));
    expect(await history()).toEqual(lines(6, 1, 1, 0));
    expect(await history('--card-limits', '1,15')).toEqual(lines(6, 1, 1, 2));
  });
});
