import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createSandboxGateway } from '../../gateways/sandbox/server.ts';
import { API_KEY, startSandbox } from './gateway-sandbox-harness.ts';
import type { Sandbox } from './gateway-sandbox-harness.ts';

let sandbox: Sandbox;
let gatewayMethodId: string;
beforeAll(async () => {
  sandbox = await startSandbox();
  const token = await sandbox.issueToken('4242424242424242', 'cs_1');
  const saved = await sandbox.gateway.saveMethod({ key: 'save:1', token, session: 'cs_1' });
  if (saved.kind !== 'saved') throw new Error(saved.kind);
  ({ gatewayMethodId } = saved.card);
});
afterAll(() => sandbox.close());

const request = (key: string, subscriptionId: string | null, paymentMethodId = 'pmt_1') => ({
  key,
  gatewayChargeId: null,
  gatewayMethodId,
  amountMinor: 1_999,
  currency: 'USD',
  reference: { merchantId: 'mer_1', intentId: 'in_1', subscriptionId, paymentMethodId },
});

const bookOf = async (query: string) => {
  const response = await sandbox.call('GET', `/control/charges?${query}`);
  return (await response.json()) as {
    charges: Record<string, unknown>[];
    next: number | null;
  };
};

describe('the charge list of the sandbox gateway, /control/charges,', () => {
  it('has a subscription’s charges in order, with outcome, refunds and send count [D-61]', async () => {
    await sandbox.call('POST', '/control/declines', {
      subscriptionId: 'sub_book',
      code: 'insufficient_funds',
      count: 1,
    });
    await sandbox.gateway.charge(request('charge:in_1:1', 'sub_book'));
    await sandbox.gateway.charge(request('charge:in_other:1', 'sub_other'));
    const paid = await sandbox.gateway.charge(request('charge:in_1:2', 'sub_book'));
    await sandbox.gateway.charge(request('charge:in_1:2', 'sub_book'));
    if (paid.kind !== 'succeeded') throw new Error(paid.kind);
    const { gatewayChargeId } = paid;
    await sandbox.gateway.refund({
      key: 'refund:1',
      gatewayChargeId,
      amountMinor: 500,
      currency: 'USD',
    });

    const { charges, next } = await bookOf('subscriptionId=sub_book');
    const reference = {
      merchantId: 'mer_1',
      intentId: 'in_1',
      subscriptionId: 'sub_book',
      paymentMethodId: 'pmt_1',
    };
    const shared = { gatewayMethodId, amountMinor: 1_999, currency: 'USD', reference };
    const any = { createdAt: expect.any(Number), sequence: expect.any(Number) };
    expect(charges).toEqual([
      {
        ...shared,
        ...any,
        id: expect.any(String),
        key: 'charge:in_1:1',
        outcome: 'declined',
        code: 'insufficient_funds',
        gatewayCode: null,
        networkCode: null,
        advice: null,
        sentCount: 1,
        refundedMinor: 0,
        refunds: [],
      },
      {
        ...shared,
        ...any,
        id: gatewayChargeId,
        key: 'charge:in_1:2',
        outcome: 'succeeded',
        code: null,
        gatewayCode: null,
        networkCode: null,
        advice: null,
        sentCount: 2,
        refundedMinor: 500,
        refunds: [
          {
            key: 'refund:1',
            gatewayRefundId: expect.any(String),
            amountMinor: 500,
            status: 'succeeded',
            createdAt: expect.any(Number),
          },
        ],
      },
    ]);
    expect(next).toBeNull();
    const after = Number(charges[0]?.['sequence']);
    const rest = await bookOf(`subscriptionId=sub_book&after=${after}`);
    expect(rest.charges.map((charge) => charge['key'])).toEqual(['charge:in_1:2']);
  });
});

describe('a repeated request to the sandbox gateway', () => {
  it('is marked as replayed, unlike the first request [D-32]', async () => {
    const send = () =>
      fetch(`${sandbox.server.url}/v1/charges`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${API_KEY}`,
          'content-type': 'application/json',
          'idempotency-key': 'charge:in_replay:1',
        },
        body: JSON.stringify(request('charge:in_replay:1', null)),
      });
    const [first, second] = [await send(), await send()];
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(await second.json()).toEqual(await first.json());
  });
});

describe('the control API of the sandbox gateway', () => {
  it('declines the next charges of one payment method only [D-61]', async () => {
    await sandbox.call('POST', '/control/declines', {
      paymentMethodId: 'pmt_steered',
      code: 'stolen_card',
      count: 1,
    });
    const other = await sandbox.gateway.charge(request('charge:in_2:1', null, 'pmt_free'));
    expect(other.kind).toBe('succeeded');
    expect(
      await sandbox.gateway.charge(request('charge:in_3:1', null, 'pmt_steered')),
    ).toMatchObject({
      kind: 'declined',
      code: 'stolen_card',
      gatewayCode: null,
      networkCode: null,
      advice: null,
    });
  });
});

describe('the sandbox gateway', () => {
  it.each([
    ['POST', '/v1/charges'],
    ['GET', '/v1/charges?key=k'],
    ['POST', '/v1/methods'],
    ['POST', '/v1/refunds'],
    ['POST', '/control/declines'],
    ['GET', '/control/charges'],
  ])('refuses %s %s without the gateway key [D-20]', async (method, path) => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: 'Basic abc' }]) {
      const response = await fetch(sandbox.server.url + path, { method, headers });
      expect(response.status).toBe(401);
    }
  });

  it('does not process a charge with a wrong key, and reports no decline [D-46]', async () => {
    const { url } = sandbox.server;
    const stranger = createSandboxClient({ url, publicUrl: url, apiKey: 'wrong' });
    expect(await stranger.charge(request('charge:in_7:1', null))).toEqual({
      kind: 'not_sent',
      reason: 'the gateway refused our key: unauthorized',
      isAccountRefused: true,
    });
    await stranger.close();
  });
});

describe('the database of the sandbox gateway', () => {
  it('gives the same outcomes to two more servers that start in parallel [D-32]', async () => {
    const first = await sandbox.gateway.charge(request('charge:in_8:1', 'sub_restart'));
    const options = {
      databaseUrl: sandbox.database.url,
      apiKey: 'another-key',
      allowedReturnOrigins: [],
    };
    const servers = await Promise.all([
      createSandboxGateway(options),
      createSandboxGateway(options),
    ]);
    for (const { url, close } of servers) {
      const client = createSandboxClient({ url, publicUrl: url, apiKey: 'another-key' });
      expect(await client.lookup(request('charge:in_8:1', 'sub_restart'))).toEqual(first);
      expect(await client.charge(request('charge:in_8:1', 'sub_restart'))).toEqual(first);
      await client.close();
      await close();
    }
  });
});
