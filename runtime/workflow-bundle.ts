import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import type { BundleOptions, WorkerOptions } from '@temporalio/worker';

const WORKFLOWS = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));

/**
 * Bundles the workflows. A workflow thread evaluates our modules once, not for each run: a run then takes 12 kB beside its
 * state in place of 128. So no module may keep state.
 */
export async function bundleWorkflows(
  workflowInterceptorModules: string[] = [],
): Promise<{ code: string }> {
  return bundleWorkflowCode({
    workflowsPath: WORKFLOWS,
    preloadModules: [WORKFLOWS],
    workflowInterceptorModules,
    webpackConfigHook: keepModernSyntax,
    logger: new DefaultLogger('WARN'),
  });
}

/** Bundles the workflows into `file`. An atomic rename ensures that the file is never incomplete. */
export async function writeWorkflowBundle(file: string): Promise<void> {
  const { code } = await bundleWorkflows();
  const whole = `${file}.${process.pid}.tmp`;
  writeFileSync(whole, code);
  renameSync(whole, file);
}

export type WorkflowBundle = NonNullable<WorkerOptions['workflowBundle']>;

/**
 * Returns 12 characters that name the bundle's code. Temporal writes the build id four times into each row of a run, and
 * the SDK's own has 90 characters.
 */
export function buildIdOf(bundle: WorkflowBundle): string {
  const code = 'code' in bundle ? bundle.code : readFileSync(bundle.codePath);
  return createHash('sha256').update(code).digest('hex').slice(0, 12);
}

type WebpackConfig = Parameters<NonNullable<BundleOptions['webpackConfigHook']>>[0];

/** The SDK compiles for ES2017, where each copy of an object by `...` is a call of a slow helper. */
function keepModernSyntax(config: WebpackConfig): WebpackConfig {
  const compilers = config.module?.rules?.flatMap((rule) =>
    typeof rule === 'object' && isCompiler(rule?.use) ? [rule.use] : [],
  );
  if (compilers?.length !== 1) throw new Error('The SDK bundles workflows in another way.');
  for (const { options } of compilers) options.jsc.target = 'es2022';
  return config;
}

const isCompiler = (use: unknown): use is { options: { jsc: { target: string } } } =>
  typeof use === 'object' && use !== null && 'loader' in use && String(use.loader).includes('swc');
