import { renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/** The folder of the workflows, for workers that bundle the workflows themselves. */
export const WORKFLOWS_FOLDER = fileURLToPath(new URL('../workflows/', import.meta.url));

/** Bundles the workflows into `file`. An atomic rename ensures that the file is never incomplete. */
export async function writeWorkflowBundle(file: string): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS_FOLDER,
    logger: new DefaultLogger('WARN'),
  });
  const whole = `${file}.${process.pid}.tmp`;
  writeFileSync(whole, code);
  renameSync(whole, file);
}
