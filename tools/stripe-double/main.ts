import { parseArgs } from 'node:util';
import { loadStripeDoubleConfig } from '../config.ts';
import { createLogger } from '../../runtime/logger.ts';
import { announceReady, onShutdown } from '../../runtime/shutdown.ts';
import { createStripeDouble } from './server.ts';

/** Secrets are variables: other users can read a process's arguments. */
const { values } = parseArgs({
  options: {
    'stripe-mock-url': { type: 'string', default: '' },
    'spec-file': { type: 'string', default: '' },
  },
});

const config = loadStripeDoubleConfig();
const logger = createLogger({ name: 'stripe-double', level: config.logLevel });
const double = await createStripeDouble({
  databaseUrl: config.databaseUrl,
  controlKey: config.controlKey,
  host: config.host,
  port: config.port,
  publicUrl: config.doubleUrl,
  check: { stripeMockUrl: values['stripe-mock-url'], specFile: values['spec-file'] },
  // A message may contain the fields of the request, such as a payer's e-mail address.
  onFailure: (error, route) => {
    const { name, code } = error as { name?: string; code?: string };
    logger.error({ route, error: name, code }, 'a request failed');
  },
});

onShutdown([{ name: 'Stripe double', close: () => double.close() }], { logger });
logger.info({ url: double.url }, 'the Stripe double is ready; it moves no money');
announceReady();
