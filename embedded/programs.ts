import { join } from 'node:path';
import { bundledProgram } from './program-bundle.ts';
import type { ProgramFile } from './program-bundle.ts';
import type { Service } from './services.ts';

export interface ProgramSettings {
  readonly environment: Readonly<Record<string, string>>;
  readonly logFolder: string;
  /** The folder that `bundlePrograms` wrote. */
  readonly programFolder: string;
  readonly apiUrl: string;
  readonly gatewayUrl: string;
}

const READY_WITHIN_MS = 90_000;

/** The sandbox gateway, the API and the worker as services. */
export function ourPrograms(settings: ProgramSettings): {
  gateway: Service;
  api: Service;
  worker: Service;
} {
  const program = (
    name: string,
    file: ProgramFile,
    stopWaitMs: number,
    isReady: Service['isReady'],
  ): Service => ({
    name,
    program: () => ({
      command: process.execPath,
      args: bundledProgram(settings.programFolder, file),
    }),
    environment: settings.environment,
    logFile: join(settings.logFolder, `${name}.log`),
    isReady,
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [
      { signal: 'SIGTERM', waitMs: stopWaitMs },
      { signal: 'SIGKILL', waitMs: 1_000 },
    ],
    isOurProgram: true,
  });
  return {
    gateway: program('gateway', 'gateways/sandbox/main.ts', 2_000, () =>
      isHealthy(settings.gatewayUrl),
    ),
    api: program('api', 'api/main.ts', 4_000, () => isHealthy(settings.apiUrl)),
    worker: program('worker', 'worker.ts', 5_000, async (saysReady) => saysReady),
  };
}

async function isHealthy(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) });
  await response.body?.cancel();
  return response.status === 200;
}
