// node --import tsx runtime/bundle-workflows.ts <file>: the workflows in one file for WORKFLOW_BUNDLE,
// so that a worker that starts does not have to bundle them first.

import { writeWorkflowBundle } from './workflow-bundle.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
await writeWorkflowBundle(file);
