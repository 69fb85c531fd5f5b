import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { MetricsExporterConfig } from '@temporalio/worker';

/**
 * The metrics of Temporal's SDK. Its exporter listens on a free port of loopback, from which `text` reads the page, so
 * that each process has one page. Durations are in seconds; names have their unit and `_total`.
 */
export async function createSdkMetrics(): Promise<{
  exporter: MetricsExporterConfig;
  text: () => Promise<string>;
}> {
  const bindAddress = `127.0.0.1:${await freePort()}`;
  const names = { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };
  return {
    exporter: { attachServiceName: false, prometheus: { bindAddress, ...names } },
    text: async () => (await fetch(`http://${bindAddress}/metrics`)).text(),
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
