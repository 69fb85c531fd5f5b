import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../tools/embedded/ports.ts';
import { onDevServerWith } from '../support/environment.ts';
import { startNode } from '../support/our-process.ts';

/**
 * The Docker image runs TypeScript files through tsx. Other tests and `npm start` run bundled programs;
 * this test starts each program with the command of its service in docker-compose.yml.
 */

const { services } = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }) as {
  services: Record<string, { readonly command?: readonly string[] }>;
};

const test = onDevServerWith({ runsActivities: false });

test.concurrent.for(['sandbox-gateway', 'api', 'worker'])(
  'the command of the service %s in docker-compose.yml becomes ready and stops on SIGTERM',
  async (service, { env }) => {
    const [node, ...args] = services[service]?.command ?? [];
    expect(node).toBe('node');
    const program = await startNode(args, {
      ...env.variables,
      API_PORT: String(await freePort()),
      GATEWAY_PORT: String(await freePort()),
      CREDENTIAL_PEPPER: 'pepper-of-the-image-commands-0000000001',
      SESSION_KEY: 'session-key-of-the-image-commands-00001',
    });
    await program.stop();
    const { output, ...end } = await program.gone;
    expect(end, output).toEqual({ code: 0, signal: null });
  },
);
