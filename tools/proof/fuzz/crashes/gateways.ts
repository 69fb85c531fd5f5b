import { randomUUID } from 'node:crypto';
import { createSandboxClient } from '../../../../gateways/sandbox/client.ts';
import { createStripeGateway } from '../../../../gateways/stripe/adapter.ts';
import type { PaymentGateway } from '../../../../gateways/port.ts';
import { askControl } from '../../../../cli/verify/gateway-control.ts';
import { startStripeMock, stripeMockFiles } from '../../../embedded/stripe-mock.ts';
import { createFaultySandbox } from '../../../faulty-sandbox/server.ts';
import { createStripeDouble } from '../../../stripe-double/server.ts';

const TIMEOUT_MS = 20_000;
const DAY_MS = 86_400_000;
/** The key of both gateways. */
export const KEY = randomUUID();
/** stderr is for the double's own failures. */
const say = (): undefined => undefined;
export const RETURN_ORIGIN = 'http://127.0.0.1:8080';

export interface GatewayPlaces {
  readonly databaseUrl: string;
  /** Folder of downloaded programs, for stripe-mock. */
  readonly cacheDir: string;
}

interface Card {
  readonly session: string;
  readonly customerId: string;
  readonly number: string;
}

const PAY = '4242424242424242 4242424242424242 5555555555554444';

export async function openSandbox({ databaseUrl }: GatewayPlaces) {
  const origins = [RETURN_ORIGIN];
  const server = await createFaultySandbox({
    databaseUrl,
    apiKey: KEY,
    allowedReturnOrigins: origins,
  });
  const { url } = server;
  const gateway = createSandboxClient({ url, publicUrl: url, apiKey: KEY, timeoutMs: TIMEOUT_MS });
  return {
    url,
    isSandbox: true,
    cards: `${PAY} 4000000000000341 4000000000000002 4242424242424241`,
    account: async () => ({ gateway, secretKey: null }),
    enterCard: async (_: PaymentGateway, { session, number }: Card) => {
      const fields = { name: 'Ada', number, expiry: '12/99', cvc: '123', session };
      return post(`${url}/tokenise`, { ...fields, return_url: `${RETURN_ORIGIN}/back` });
    },
    declineNext: (subscriptionId: string, code: string, count: number) =>
      askControl(`${url}/control/declines`, KEY, 'POST', { subscriptionId, code, count }),
    close: async () => {
      await gateway.close();
      await server.close();
    },
  };
}

export async function openStripe({ databaseUrl, cacheDir }: GatewayPlaces) {
  const files = await stripeMockFiles(cacheDir, say);
  const mock = await startStripeMock(files.program);
  const check = { stripeMockUrl: mock.url, specFile: files.specFile };
  const double = await createStripeDouble({ databaseUrl, controlKey: KEY, check });
  const { url } = double;
  const control = (path: string, body: object) =>
    askControl(`${url}/control/${path}`, KEY, 'POST', body);
  const pace = { take: async () => undefined, backOff: () => undefined };
  return {
    url,
    isSandbox: false,
    cards: `${PAY} 4000002500003155 4000002760003184 4000000000000341`,
    account: async () => {
      const secretKey = `sk_test_${randomUUID()}`;
      const { accountId } = (await control('accounts', { secretKey })) as { accountId: string };
      const settings = { secretKey, accountId, url, pace, timeoutMs: TIMEOUT_MS };
      return { gateway: createStripeGateway(settings), secretKey };
    },
    enterCard: async (gateway: PaymentGateway, { session, customerId, number }: Card) => {
      const opened = await gateway.openCardEntry?.({
        session,
        tries: 0,
        customer: { id: customerId, name: 'Ada', email: 'ada@example.com', gatewayMethodId: null },
        returnUrl: `${RETURN_ORIGIN}/back`,
        cancelUrl: RETURN_ORIGIN,
        expiresAt: Date.now() + DAY_MS,
        text: 'Tea',
        locale: 'en',
      });
      if (opened?.kind !== 'redirect') throw new Error('no card page');
      return post(opened.url, { name: 'Ada', number, expiry: '12 / 34', cvc: '123' });
    },
    declineNext: (subscriptionId: string, code: string, count: number) =>
      control('outcomes', { metadata: { subscriptionId }, count, ...stripeDecline(code) }),
    close: async () => {
      await double.close();
      await mock.stop();
    },
  };
}

function stripeDecline(declineCode: string) {
  if (declineCode === 'authentication_required') return { kind: 'authentication' };
  const adviceCode = declineCode === 'fraudulent' ? 'do_not_try_again' : 'try_again_later';
  return { kind: 'decline', code: 'card_declined', declineCode, adviceCode };
}

/** Submits a form of a payer's page, confirms a card that the bank asks about, and returns the card's token. */
export async function post(url: string, fields: Record<string, string>): Promise<string | null> {
  const body = new URLSearchParams(fields);
  const answer = await fetch(url, { method: 'POST', redirect: 'manual', body });
  await answer.text();
  const location = answer.headers.get('location');
  if (location === null) return null;
  return location.includes('/challenge/')
    ? post(location, { outcome: 'complete' })
    : new URL(location).searchParams.get('payment_token');
}
