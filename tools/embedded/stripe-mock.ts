import { devNull } from 'node:os';
import { join } from 'node:path';
import { answers } from './control.ts';
import { goPrograms } from './go-programs.ts';
import type { Report } from './progress.ts';
import { supervise } from './services.ts';
import type { Service } from './services.ts';
import { freePort } from './ports.ts';

/** Its OpenAPI document has API version 2026-08-26.dahlia, which `stripe` 22.6.2 sends. */
const VERSION = '0.203.0';

const READY_WITHIN_MS = 60_000;

export type StripeMockFiles = Awaited<ReturnType<typeof stripeMockFiles>>;

/**
 * Builds the program from its Go module, once. Throws ComponentMissingError. `specFile`: Stripe's OpenAPI 3.0
 * document, 8 MB of JSON, in the version that the program embeds.
 */
export async function stripeMockFiles(cacheDir: string, report: Report) {
  const folder = await goPrograms(cacheDir, report, {
    entry: `stripe-mock-${VERSION}`,
    module: 'github.com/stripe/stripe-mock',
    version: `v${VERSION}`,
    programs: [''],
    file: 'embedded/openapi/spec3.json',
    duration: 'about 13 s',
  });
  return { program: join(folder, 'stripe-mock'), specFile: join(folder, 'spec3.json') };
}

/** It refuses another `Stripe-Version`, and ends with this process, also after a kill. */
export function stripeMockService(program: string, port: number, logFile: string): Service {
  return {
    name: 'stripe-mock',
    program: () => ({ command: 'sh', args: ['-c', WITH_PARENT, program, ...argumentsFor(port)] }),
    logFile,
    isReady: () => answers(`${urlOf(port)}/v1/account`, { authorization: 'Bearer sk_test_ready' }),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [{ signal: 'SIGTERM', waitMs: 1_000 }],
    isOurProgram: true,
  };
}

const urlOf = (port: number): string => `http://127.0.0.1:${port}`;

/** Without an address for HTTPS stripe-mock would also listen on port 12112 of every interface. */
function argumentsFor(port: number): string[] {
  const addresses = ['-http-addr', `127.0.0.1:${port}`, '-https-addr', '127.0.0.1:0'];
  return [...addresses, '-strict-version-check'];
}

/** On a free port, without a log. */
export async function startStripeMock(program: string) {
  const port = await freePort();
  const service = supervise(stripeMockService(program, port, devNull), { report: () => undefined });
  await service.start();
  return { url: urlOf(port), stop: () => service.stop() };
}

/** Ends the program when our stdin closes. A background command gets /dev/null as stdin, so stdin is copied to 3. */
const WITH_PARENT = `
exec 3<&0
"$0" "$@" </dev/null 3<&- &
program=$!
(cat <&3 >/dev/null; kill $program 2>/dev/null) &
exec 3<&-
wait $program
`;
