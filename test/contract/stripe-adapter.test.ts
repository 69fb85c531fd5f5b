import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { describe, expect, onTestFinished } from 'vitest';
import { freePort } from '../../tools/embedded/ports.ts';
import { createPace } from '../../gateways/stripe/pace.ts';
import {
  gatewayOf,
  onStripe as it,
  preparedCharge,
  refuseNext,
  submitForm,
} from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

/** The behaviour of Stripe's adapter beyond the contract of all gateways. */

const CONFIRM = { method: 'POST', path: '/v1/payment_intents/*/confirm' };

/** Starts a server that passes each request on to `target`. `spoil` gets the body of the answer and answers instead. */
async function startSpoilingProxy(
  target: string,
  spoil: (body: Buffer, response: ServerResponse) => void,
) {
  const server = createHttpServer((request, response) => {
    const passed = httpRequest(
      `${target}${request.url ?? ''}`,
      { method: request.method, headers: request.headers },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => spoil(Buffer.concat(parts), response));
      },
    );
    request.pipe(passed);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

describe('a charge at Stripe', () => {
  it('is declined with payment_method_removed if Stripe no longer has the customer', async ({
    world,
  }) => {
    const { key, amountMinor, currency, gatewayMethodId, reference } = await preparedCharge(world);
    const method = gatewayMethodId.split('/')[1] ?? '';
    const prepared = await gatewayOf(world).prepare?.({
      key: `${key}0`,
      gatewayChargeId: null,
      amountMinor,
      currency,
      reference,
      gatewayMethodId: `cus_deleted/${method}`,
    });
    expect(prepared).toMatchObject({ kind: 'declined', code: 'payment_method_removed' });
  });

  it('is the same PaymentIntent, made once, when it is prepared again after its id was lost [D-39]', async ({
    world,
  }) => {
    const gateway = gatewayOf(world);
    const request = await preparedCharge(world);
    expect(await gateway.charge(request)).toMatchObject({ kind: 'succeeded' });

    const again = await gateway.prepare?.({ ...request, gatewayChargeId: null });
    expect(again).toEqual({ kind: 'prepared', gatewayChargeId: request.gatewayChargeId });
    expect(await gateway.charge(request)).toEqual({
      kind: 'succeeded',
      gatewayChargeId: request.gatewayChargeId,
    });
    const otherAmount = { ...request, gatewayChargeId: null, amountMinor: 2_099 };
    await expect(gateway.prepare?.(otherAmount)).rejects.toThrow('idempotency_error');
    const [customer = ''] = request.gatewayMethodId.split('/');
    const { data } = await world.stripe.paymentIntents.list({ customer });
    expect(data.map(({ id, amount_received: paid }) => [id, paid])).toEqual([
      [request.gatewayChargeId, 1_999],
    ]);
  });

  it('is a PaymentIntent that names merchant, intent, subscription, cycle and key', async ({
    world,
  }) => {
    const request = await preparedCharge(world);
    const intent = await world.stripe.paymentIntents.retrieve(request.gatewayChargeId);
    expect(intent).toMatchObject({
      status: 'requires_confirmation',
      amount: 1_999,
      currency: 'usd',
      metadata: {
        key: request.key,
        merchantId: 'mer_1',
        intentId: 'in_1',
        subscriptionId: 'sub_1',
        cycleNumber: '2',
        paymentMethodId: 'pmt_1',
      },
    });
  });

  it.for([
    [429, 'api_error', 'not_sent'],
    [400, 'rate_limit', 'not_sent'],
    [409, 'api_error', 'unknown'],
    [424, 'api_error', 'unknown'],
    [503, 'api_error', 'unknown'],
  ] as const)('whose request gets %i %s is %s', async ([status, code, kind], { world }) => {
    const request = await preparedCharge(world);
    await refuseNext(world, CONFIRM, { type: 'api_error', code }, status);
    expect((await gatewayOf(world).charge(request)).kind).toBe(kind);
    expect(await gatewayOf(world).lookup(request)).toEqual({ kind: 'absent' });
    expect((await gatewayOf(world).charge(request)).kind).toBe('succeeded');
  });

  it.for<[string, (body: Buffer, response: ServerResponse) => void]>([
    [
      'the answer breaks off',
      (body, response) => {
        response.writeHead(200, { 'content-length': body.length });
        response.write(body.subarray(0, 40), () => response.destroy());
      },
    ],
    [
      'the answer is a page of HTML with the status 502',
      (_body, response) => response.writeHead(502).end('<html>Bad gateway</html>'),
    ],
    [
      'a proxy answers 504 with JSON that is not Stripe’s',
      (_body, response) => response.writeHead(504).end('{"message":"Endpoint timed out"}'),
    ],
    [
      'the answer is a redirect to another page',
      (_body, response) => response.writeHead(307).end('{"error":{"type":"moved"}}'),
    ],
  ])('is unknown, and its look-up finds it paid, when %s [D-40]', async ([, spoil], { world }) => {
    const request = await preparedCharge(world);
    const server = await startSpoilingProxy(world.proxy.url, spoil);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await gatewayOf(world, { url }).charge(request)).kind).toBe('unknown');
    expect(await gatewayOf(world).lookup(request)).toMatchObject({ kind: 'succeeded' });
    server.close();
  });

  it('is not sent when no server listens at the address', async ({ world }) => {
    const request = await preparedCharge(world);
    const port = await freePort();
    const gateway = gatewayOf(world, { url: `http://127.0.0.1:${port}` });
    expect((await gateway.charge(request)).kind).toBe('not_sent');
  });

  it('is not sent when it waits longer than 2 s for the account’s rate limiter, or its caller aborts the wait', async ({
    world,
  }) => {
    const request = await preparedCharge(world);
    const pace = createPace('test');
    const gateway = gatewayOf(world, { pace });
    // Each call renews the wait, so the rate limiter lets nothing through until the interval is cleared.
    pace.backOff();
    const renewal = setInterval(() => pace.backOff(), 100);
    onTestFinished(() => clearInterval(renewal));
    expect(await gateway.charge(request)).toEqual({
      kind: 'not_sent',
      reason: 'our own limit of requests to the Stripe account was reached',
    });
    clearInterval(renewal);
    expect(await gateway.lookup(request)).toEqual({ kind: 'absent' });
    expect((await gateway.charge(request)).kind).toBe('succeeded');
  });

  it('makes our rate limiter back off when Stripe refuses the charge with the code rate_limit', async ({
    world,
  }) => {
    const request = await preparedCharge(world);
    const calls: string[] = [];
    const pace = {
      take: async (method: string) => void calls.push(method),
      backOff: () => void calls.push('back off'),
    };
    const gateway = gatewayOf(world, { pace });
    await refuseNext(world, CONFIRM, { code: 'rate_limit' }, 429);
    expect((await gateway.charge(request)).kind).toBe('not_sent');
    expect((await gateway.charge(request)).kind).toBe('succeeded');
    expect(calls).toEqual(['POST', 'back off', 'POST']);
  });

  it('has no effect when Stripe refuses the secret key', async ({ world }) => {
    const request = await preparedCharge(world);
    const gateway = gatewayOf(world, { secretKey: 'sk_test_unknown' });
    expect((await gateway.charge(request)).kind).toBe('not_sent');
    expect((await gateway.lookup(request)).kind).toBe('unknown');
    expect(await gatewayOf(world).lookup(request)).toEqual({ kind: 'absent' });
  });

  it('is in progress and cannot be withdrawn while Stripe processes the charge', async ({
    world,
  }) => {
    const request = await preparedCharge(world);
    const gateway = gatewayOf(world);
    const [, paymentMethodId] = request.gatewayMethodId.split('/');
    await world.control('POST', 'outcomes', { kind: 'processing', count: 1, paymentMethodId });
    expect(await gateway.charge(request)).toEqual({ kind: 'in_progress' });
    expect(await gateway.lookup(request)).toEqual({ kind: 'in_progress' });
    expect((await gateway.withdraw?.(request))?.kind).toBe('unknown');
    await world.control('POST', 'settle', { paymentIntentId: request.gatewayChargeId });
    expect((await gateway.lookup(request)).kind).toBe('succeeded');
  });

  it('is declined before it is sent when Stripe cannot charge its amount [D-42]', async ({
    world,
  }) => {
    const request = { ...(await preparedCharge(world)), amountMinor: 1_005, currency: 'KWD' };
    expect(await gatewayOf(world).prepare?.(request)).toEqual({
      kind: 'declined',
      code: 'processing_error',
      gatewayChargeId: null,
      gatewayCode: 'invalid_charge_amount',
      networkCode: null,
      advice: null,
    });
  });
});

describe('a charge at Stripe while the payer is present', () => {
  const BACK = 'http://127.0.0.1:8080/bank';
  /** This card needs 3D Secure for every charge. */
  const CONFIRMED_CARD = '4000002760003184';
  const payer = { returnUrl: BACK, savesMethod: true };

  async function sentToBank(world: StripeWorld) {
    const request = { ...(await preparedCharge(world, CONFIRMED_CARD)), payer };
    const gateway = gatewayOf(world);
    const sent = await gateway.charge(request);
    if (sent.kind !== 'in_progress' || sent.payerUrl === undefined) throw new Error(sent.kind);
    return { request, gateway, payerUrl: sent.payerUrl };
  }

  it('succeeds when the payer confirms on the page of the bank, and permits later charges', async ({
    world,
  }) => {
    const { request, gateway, payerUrl } = await sentToBank(world);
    expect(await gateway.lookup(request)).toEqual({ kind: 'in_progress', payerUrl });
    const { location } = await submitForm(payerUrl, { outcome: 'complete' });
    expect(location?.startsWith(`${BACK}?`)).toBe(true);
    const { gatewayChargeId } = request;
    expect(await gateway.lookup(request)).toEqual({ kind: 'succeeded', gatewayChargeId });
    expect(await world.stripe.paymentIntents.retrieve(gatewayChargeId)).toMatchObject({
      setup_future_usage: 'off_session',
      amount_received: 1_999,
    });
  });

  it('is declined when the payer refuses the confirmation', async ({ world }) => {
    const { request, gateway, payerUrl } = await sentToBank(world);
    await submitForm(payerUrl, { outcome: 'fail' });
    const declined = {
      kind: 'declined',
      code: 'authentication_required',
      gatewayChargeId: request.gatewayChargeId,
      gatewayCode: 'payment_intent_authentication_failure',
      networkCode: null,
      advice: null,
    };
    expect(await gateway.lookup(request)).toEqual(declined);
    expect(await gateway.withdraw?.(request)).toEqual(declined);
    expect(await gateway.charge(request)).toEqual(declined);
  });

  it('is never made when the payer confirms after the withdrawal', async ({ world }) => {
    const { request, gateway, payerUrl } = await sentToBank(world);
    expect(await gateway.withdraw?.(request)).toEqual({ kind: 'withdrawn' });
    const { location } = await submitForm(payerUrl, { outcome: 'complete' });
    expect(location).toContain('redirect_status=failed');
    expect(await gateway.withdraw?.(request)).toEqual({ kind: 'withdrawn' });
    const intent = await world.stripe.paymentIntents.retrieve(request.gatewayChargeId);
    expect(intent).toMatchObject({ status: 'canceled', amount_received: 0 });
  });

  it('cannot be withdrawn after the payer has confirmed', async ({ world }) => {
    const { request, gateway, payerUrl } = await sentToBank(world);
    await submitForm(payerUrl, { outcome: 'complete' });
    const { gatewayChargeId } = request;
    expect(await gateway.withdraw?.(request)).toEqual({ kind: 'succeeded', gatewayChargeId });
  });

  it('succeeds at once when the bank asks for no confirmation', async ({ world }) => {
    const request = { ...(await preparedCharge(world)), payer };
    const { gatewayChargeId } = request;
    expect(await gatewayOf(world).charge(request)).toEqual({ kind: 'succeeded', gatewayChargeId });
  });
});
