import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createFaultySandbox } from '../../tools/faulty-sandbox/server.ts';
import type { SandboxGatewayOptions } from '../../gateways/sandbox/server.ts';
import { TEST_CARDS } from '../../gateways/sandbox/test-cards.ts';
import { createTestDatabase } from '../support/database.ts';
import type { GatewayHarness } from './gateway-harness.ts';

/** The bearer token for every route of the sandbox gateway except the tokeniser and /health. */
export const API_KEY = 'gateway-key-of-the-contract-tests-0001';

/** The only return origin that the tokeniser of these tests allows. */
export const RETURN_ORIGIN = 'http://127.0.0.1:8080';

/** Starts the sandbox gateway on its own database, with a client and plain HTTP access. */
export async function startSandbox(options: Partial<SandboxGatewayOptions> = {}) {
  const database = await createTestDatabase();
  const server = await createFaultySandbox({
    databaseUrl: database.url,
    apiKey: API_KEY,
    allowedReturnOrigins: [RETURN_ORIGIN],
    ...options,
  });
  const place = { url: server.url, publicUrl: server.url, apiKey: API_KEY };
  const gateway = createSandboxClient({ ...place, timeoutMs: 30_000 });
  const impatient = createSandboxClient({ ...place, timeoutMs: 750 });

  /** Sends a request with the gateway key. */
  const call = (method: string, path: string, body?: unknown) =>
    fetch(server.url + path, {
      method,
      headers: {
        authorization: `Bearer ${API_KEY}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  /** Submits the card form as a browser does, without following redirects. */
  const submitCard = (fields: Readonly<Record<string, string>>) =>
    fetch(`${server.url}/tokenise`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({
        name: 'Ada Example',
        number: '4242 4242 4242 4242',
        expiry: '12/34',
        cvc: '123',
        session: 'cs_1',
        return_url: `${RETURN_ORIGIN}/checkout/cs_1`,
        ...fields,
      }),
    });

  const issueToken = async (number: string, session: string): Promise<string> => {
    const cvc = number.startsWith('37') ? '1234' : '123';
    const response = await submitCard({ number, session, cvc });
    const token = new URL(response.headers.get('location') ?? '').searchParams.get('payment_token');
    if (token === null) throw new Error(`no token for ${number}: ${response.status}`);
    return token;
  };

  const close = async (): Promise<void> => {
    await gateway.close();
    await impatient.close();
    await server.close();
    await database.drop();
  };

  return { gateway, impatient, server, database, call, submitCard, issueToken, close };
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** Starts the sandbox gateway as a harness of the contract tests. */
export async function startSandboxHarness(): Promise<GatewayHarness> {
  const sandbox = await startSandbox();
  const control = async (path: string, body: unknown): Promise<void> => {
    const response = await sandbox.call('POST', path, body);
    if (response.status !== 200) throw new Error(`${path}: ${await response.text()}`);
  };
  return {
    gateway: sandbox.gateway,
    chargeAndGiveUp: (request) => sandbox.impatient.charge(request),
    issueToken: sandbox.issueToken,
    payingCard: '4242424242424242',
    saveCard: null,
    rereadableTokens: null,
    decliningCards: TEST_CARDS.flatMap(({ number, code, when }) =>
      code === null || when === 'save' ? [] : [{ number, code }],
    ),
    faults: {
      once: (order) => control('/control/faults', { ...order, count: 1 }),
      decline: (subscriptionId, code, count, advice) =>
        control('/control/declines', {
          subscriptionId,
          code,
          count,
          ...(advice ? { advice: { kind: advice }, gatewayCode: code } : {}),
        }),
    },
    refunds: {
      leavePending: () =>
        control('/control/faults', { operation: 'refund', fault: 'pending', count: 1 }),
      decide: ({ key }, status) => control('/control/refunds', { key, status }),
    },
    book: async (subscriptionId) => {
      const response = await sandbox.call(
        'GET',
        `/control/charges?subscriptionId=${subscriptionId}`,
      );
      const { charges } = (await response.json()) as {
        charges: { key: string; outcome: string; amountMinor: number; sentCount: number }[];
      };
      return charges;
    },
    close: sandbox.close,
  };
}
