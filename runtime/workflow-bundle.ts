import { renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** Where workers find the workflows that they bundle themselves. */
export const WORKFLOWS_FOLDER = fileURLToPath(new URL('../workflows/', import.meta.url));

/** Bundles the workflows into `file`, which has the old content or the new, and never half of it. */
export async function writeWorkflowBundle(file: string): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS_FOLDER,
    logger: new DefaultLogger('WARN'),
  });
  const whole = `${file}.${process.pid}.tmp`;
  writeFileSync(whole, code);
  renameSync(whole, file);
}
