// node --import tsx runtime/bundle-workflows.ts <file>: bundles the workflows into one file. If
// WORKFLOW_BUNDLE names the file, a starting worker need not bundle the workflows itself.

import { writeWorkflowBundle } from './workflow-bundle.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Give the file to write.');
await writeWorkflowBundle(file);
