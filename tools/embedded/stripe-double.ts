import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { askControl } from '../../cli/verify/gateway-control.ts';
import { ourProgram } from './programs.ts';
import type { ProgramPlaces } from './programs.ts';
import type { Service } from './services.ts';
import { stripeMockService } from './stripe-mock.ts';
import type { StripeMockFiles } from './stripe-mock.ts';

export interface StripeDoublePorts {
  readonly stripeMockPort: number;
  readonly stripeDoublePort: number;
  readonly faultProxyPort: number;
}

export function stripeDoubleServices(
  files: StripeMockFiles,
  ports: StripeDoublePorts,
  places: ProgramPlaces,
): { stripeMock: Service; double: Service; proxy: Service } {
  const { stripeMockPort, stripeDoublePort, faultProxyPort } = ports;
  const environment = {
    ...places.environment,
    STRIPE_DOUBLE_PORT: String(stripeDoublePort),
    FAULT_PROXY_PORT: String(faultProxyPort),
  };
  const settings = { ...places, environment };
  return {
    stripeMock: stripeMockService(
      files.program,
      stripeMockPort,
      join(places.logFolder, 'stripe-mock.log'),
    ),
    double: ourProgram(settings, {
      name: 'stripe-double',
      file: 'tools/stripe-double/main.ts',
      args: [
        `--stripe-mock-url=http://127.0.0.1:${stripeMockPort}`,
        `--spec-file=${files.specFile}`,
      ],
      stopWaitMs: 4_000,
    }),
    proxy: ourProgram(settings, {
      name: 'fault-proxy',
      file: 'tools/fault-proxy/main.ts',
      stopWaitMs: 1_000,
    }),
  };
}

export interface DoubleAccount {
  readonly accountId: string;
  readonly secretKey: string;
  readonly webhookSecret: string;
}

/** The secrets are derived from the control key, so a repeat returns the same account. */
export async function registerAccount(
  doubleUrl: string,
  controlKey: string,
  apiUrl: string,
): Promise<DoubleAccount> {
  const derived = (name: string) =>
    createHmac('sha256', controlKey).update(name).digest('hex').slice(0, 32);
  const secretKey = `sk_test_${derived('stripe-account')}`;
  const webhookSecret = `whsec_${derived('stripe-webhooks')}`;
  const register = async (fields: object): Promise<string> => {
    const account = { secretKey, ...fields };
    const made = await askControl(`${doubleUrl}/control/accounts`, controlKey, 'POST', account);
    return (made as { accountId: string }).accountId;
  };
  const accountId = await register({});
  // The URL contains the id of the account, which the first request returned.
  const webhookUrl = `${apiUrl}/gateways/stripe/events/${accountId}`;
  await register({ webhookUrl, webhookSecret });
  return { accountId, secretKey, webhookSecret };
}
