import { join } from 'node:path';
import { answers } from './control.ts';
import { bundledProgram } from './program-bundle.ts';
import type { ProgramFile } from './program-bundle.ts';
import type { Service } from './services.ts';

export interface ProgramPlaces {
  readonly environment: Readonly<Record<string, string>>;
  readonly logFolder: string;
  /** The folder that `bundlePrograms` wrote. */
  readonly programFolder: string;
  /** The API's; the worker has the next port. Undefined: no metrics. */
  readonly metricsPort?: number | undefined;
}

export interface ProgramSettings extends ProgramPlaces {
  readonly apiUrl: string;
  readonly gatewayUrl: string;
}

const READY_WITHIN_MS = 90_000;

export function ourPrograms(settings: ProgramSettings): {
  gateway: Service;
  api: Service;
  worker: Service;
} {
  const metricsAt = (offset: number) => ({
    METRICS_PORT: settings.metricsPort === undefined ? '' : String(settings.metricsPort + offset),
  });
  return {
    gateway: ourProgram(settings, {
      name: 'gateway',
      file: 'tools/faulty-sandbox/main.ts',
      stopWaitMs: 2_000,
      isReady: () => answers(`${settings.gatewayUrl}/health`),
    }),
    api: ourProgram(settings, {
      name: 'api',
      file: 'api/main.ts',
      environment: metricsAt(0),
      stopWaitMs: 4_000,
      isReady: () => answers(`${settings.apiUrl}/health`),
    }),
    worker: ourProgram(settings, {
      name: 'worker',
      file: 'worker.ts',
      environment: metricsAt(1),
      stopWaitMs: 5_000,
    }),
  };
}

export interface OurProgram {
  readonly name: string;
  readonly file: ProgramFile;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stopWaitMs: number;
  /** Default: true after the program's ready message. */
  readonly isReady?: Service['isReady'];
}

export function ourProgram(places: ProgramPlaces, program: OurProgram): Service {
  const { name, file, args = [], environment, stopWaitMs } = program;
  return {
    name,
    program: () => ({
      command: process.execPath,
      args: [...bundledProgram(places.programFolder, file), ...args],
    }),
    environment: { ...places.environment, ...environment },
    logFile: join(places.logFolder, `${name}.log`),
    isReady: program.isReady ?? (async (saysReady) => saysReady),
    readyWithinMs: READY_WITHIN_MS,
    stopSteps: [
      { signal: 'SIGTERM', waitMs: stopWaitMs },
      { signal: 'SIGKILL', waitMs: 1_000 },
    ],
    isOurProgram: true,
  };
}
