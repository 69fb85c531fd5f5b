// node --import tsx runtime/bundle-workflows.ts <file>: bundles the workflows into one file for
// WORKFLOW_BUNDLE, so a starting worker does not bundle them itself.

import { writeWorkflowBundle } from './workflow-bundle.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
await writeWorkflowBundle(file);
