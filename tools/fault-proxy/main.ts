import { loadStripeDoubleConfig } from '../config.ts';
import { createLogger } from '../../runtime/logger.ts';
import { announceReady, onShutdown } from '../../runtime/shutdown.ts';
import { createFaultProxy } from './proxy.ts';

const config = loadStripeDoubleConfig();
const logger = createLogger({ name: 'fault-proxy', level: config.logLevel });

const proxy = await createFaultProxy({
  targetUrl: config.doubleUrl,
  controlKey: config.controlKey,
  host: config.host,
  port: config.proxyPort,
});

onShutdown([{ name: 'fault proxy', close: () => proxy.close() }], { logger });
logger.info({ url: proxy.url }, 'the fault proxy is ready');
announceReady();
