import { parseArgs } from 'node:util';
import { createLogger } from '../../runtime/logger.ts';
import { announceReady, onShutdown } from '../../runtime/shutdown.ts';
import { createStripeDouble } from './server.ts';

/**
 * Command-line options and no environment variables, because this program runs only for tests on this
 * machine. `--unchecked` is for load tests.
 */
const { values } = parseArgs({
  options: {
    'database-url': { type: 'string', default: '' },
    'control-key': { type: 'string', default: '' },
    port: { type: 'string', default: '0' },
    'stripe-mock-url': { type: 'string', default: '' },
    'spec-file': { type: 'string', default: '' },
    unchecked: { type: 'boolean', default: false },
  },
});

const logger = createLogger({ name: 'stripe-double', level: 'info' });
const double = await createStripeDouble({
  databaseUrl: values['database-url'],
  controlKey: values['control-key'],
  port: Number(values.port),
  check: values.unchecked
    ? null
    : { stripeMockUrl: values['stripe-mock-url'], specFile: values['spec-file'] },
  onFailure: (error, route) => logger.error({ route, error: String(error) }, 'a request failed'),
});

onShutdown([{ name: 'Stripe double', close: () => double.close() }], { logger });
logger.info({ url: double.url }, 'the Stripe double is ready; it moves no money');
announceReady();
