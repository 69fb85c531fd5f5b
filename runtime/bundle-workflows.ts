// Usage: `node --import tsx runtime/bundle-workflows.ts <file>`. Bundles the workflows into one file. If
// WORKFLOW_BUNDLE names this file, a worker does not bundle the workflows at its start.

import { writeWorkflowBundle } from './workflow-bundle.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
await writeWorkflowBundle(file);
