import { loadGatewayConfig } from '../../runtime/config.ts';
import { createLogger } from '../../runtime/logger.ts';
import { announceReady, onShutdown } from '../../runtime/shutdown.ts';
import { createFaultySandbox } from './server.ts';

const config = loadGatewayConfig();
const logger = createLogger({ name: 'sandbox-gateway', level: config.logLevel });

const gateway = await createFaultySandbox({
  databaseUrl: config.databaseUrl,
  apiKey: config.gatewayKey,
  allowedReturnOrigins: [config.apiPublicUrl],
  host: config.host,
  port: config.port,
  // The message of a database error may contain values.
  onFailure: (error, route) => {
    const { name, code } = error as { name?: string; code?: string };
    logger.error({ route, error: { name, code } }, 'a request failed');
  },
});

onShutdown([{ name: 'sandbox gateway', close: () => gateway.close() }], { logger });
logger.info({ url: gateway.url }, 'the sandbox gateway is ready; it takes test cards only');
announceReady();
