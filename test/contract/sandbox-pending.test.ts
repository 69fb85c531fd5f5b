import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { SIGNATURE_HEADER, signEvent } from '../../gateways/sandbox/events.ts';
import { chargeRequest } from './gateway-harness.ts';
import { API_KEY, startSandbox } from './gateway-sandbox-harness.ts';
import type { Sandbox } from './gateway-sandbox-harness.ts';

/** The sandbox that decides charges and refunds later, and reports each decision by a signed event. */

interface Event {
  id: string;
  type: string;
  key: string;
}

/** Starts a receiver that refuses the first `refusals` events, and a sandbox that sends its events there. */
async function start(refusals = 0) {
  const received: Event[] = [];
  const paths = new Set<string | undefined>();
  const accepted: Event[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const signature = String(request.headers[SIGNATURE_HEADER]);
      const at = Number(/^t=(\d+),/.exec(signature)?.[1]);
      expect(signature).toBe(signEvent(API_KEY, at, body));
      received.push(JSON.parse(body) as Event);
      paths.add(request.url);
      if (received.length <= refusals) response.statusCode = 503;
      else accepted.push(JSON.parse(body) as Event);
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  const sandbox = await startSandbox({
    personality: 'pending',
    decideAfterMs: 3_600_000,
    events: { url: `http://127.0.0.1:${port}/events`, secret: API_KEY },
  });
  onTestFinished(async () => {
    await sandbox.close();
    receiver.close();
    receiver.closeAllConnections();
  });
  return { sandbox, gateway: sandbox.gateway, received, accepted, paths };
}

const decide = ({ call }: Sandbox) => call('POST', '/control/decisions');

const newCharge = async ({ gateway, issueToken }: Sandbox) =>
  chargeRequest({ gateway, issueToken, payingCard: '4242424242424242', saveCard: null });

test('a charge is in progress until it is decided, and an event without the outcome reports the decision [D-32]', async () => {
  const { sandbox, gateway, accepted } = await start();
  const request = await newCharge(sandbox);
  expect(await gateway.charge(request)).toEqual({ kind: 'in_progress' });
  expect(await gateway.charge(request)).toEqual({ kind: 'in_progress' });
  await decide(sandbox);
  await expect
    .poll(() => accepted)
    .toEqual([{ id: expect.any(String), type: 'charge.decided', key: request.key }]);
  expect(await gateway.charge(request)).toEqual({
    kind: 'succeeded',
    gatewayChargeId: expect.stringMatching(/^ch_/),
  });
  await decide(sandbox);
  expect(await gateway.charge(request)).toMatchObject({ kind: 'succeeded' });
  expect(accepted).toHaveLength(1);
});

test('an event is sent to the URL of its merchant again, until the receiver accepts it [D-32]', async () => {
  const { sandbox, gateway, received, accepted, paths } = await start(2);
  const request = await newCharge(sandbox);
  await gateway.charge(request);
  await decide(sandbox);
  await expect.poll(() => accepted).toHaveLength(1);
  expect(received.map(({ id }) => id)).toEqual(Array.from({ length: 3 }, () => accepted[0]?.id));
  expect([...paths]).toEqual([`/events/${request.reference.merchantId}`]);
});

test('an event with the fault drop is never sent, and one with lose_answer is sent twice [D-61]', async () => {
  const { sandbox, gateway, received } = await start();
  for (const fault of ['drop', 'lose_answer']) {
    await sandbox.call('POST', '/control/faults', { operation: 'event', fault, count: 1 });
  }
  const [dropped, repeated, last] = [
    await newCharge(sandbox),
    await newCharge(sandbox),
    await newCharge(sandbox),
  ];
  await gateway.charge(dropped);
  await decide(sandbox);
  const faultCount = async () => {
    const answer = await sandbox.call('GET', '/control/faults');
    return ((await answer.json()) as { faults: unknown[] }).faults.length;
  };
  await expect.poll(faultCount).toBe(1);
  await gateway.charge(repeated);
  await decide(sandbox);
  await expect.poll(() => received.map(({ key }) => key)).toEqual([repeated.key, repeated.key]);
  await sandbox.call('POST', '/control/decisions/delay', { ms: 0 });
  await gateway.charge(last);
  await expect
    .poll(() => received.map(({ key }) => key))
    .toEqual([repeated.key, repeated.key, last.key]);
});

test('a charge that was withdrawn is not made when it is decided later [D-§4]', async () => {
  const { sandbox, gateway, accepted } = await start();
  const request = await newCharge(sandbox);
  expect(await gateway.charge(request)).toEqual({ kind: 'in_progress' });
  expect(await gateway.withdraw?.(request)).toEqual({ kind: 'withdrawn' });
  await decide(sandbox);
  expect(await gateway.charge(request)).toMatchObject({ kind: 'declined' });
  expect(await gateway.withdraw?.(request)).toEqual({ kind: 'withdrawn' });
  const { charges } = (await (await sandbox.call('GET', '/control/charges')).json()) as {
    charges: unknown[];
  };
  expect(charges).toEqual([]);
  expect(accepted).toEqual([]);
});

test('a refund is pending until it is decided, and may fail after it succeeded, each with an event [D-40]', async () => {
  const { sandbox, gateway, accepted } = await start();
  const request = await newCharge(sandbox);
  await gateway.charge(request);
  await decide(sandbox);
  const charge = await gateway.charge(request);
  if (charge.kind !== 'succeeded') throw new Error(charge.kind);
  const { gatewayChargeId } = charge;
  const refund = { key: 'refund:rf_1', gatewayChargeId, amountMinor: 500, currency: 'USD' };
  expect((await gateway.refund(refund)).kind).toBe('pending');
  await decide(sandbox);
  expect((await gateway.refund(refund)).kind).toBe('refunded');
  await sandbox.call('POST', '/control/refunds', { key: refund.key, status: 'failed' });
  expect(await gateway.refund(refund)).toEqual({ kind: 'refused', reason: 'refund_failed' });
  await expect
    .poll(() => accepted.map(({ type, key }) => `${type} ${key}`))
    .toEqual([
      `charge.decided ${request.key}`,
      'refund.decided refund:rf_1',
      'refund.decided refund:rf_1',
    ]);
});

test.for([
  ['GET', '/v1/charges?key=k', 405],
  ['GET', '/v1/refunds?key=k', 405],
] as const)(
  'the sandbox that decides later has no look-up: %s %s is answered %i [D-32]',
  async ([method, path, status]) => {
    const { sandbox } = await start();
    expect((await sandbox.call(method, path)).status).toBe(status);
  },
);
