// npm run explain -- <subscription id>: says what a subscription does next and why, and why each charge was made.
// Reads only the database of DATABASE_URL, or that of the running `npm start`, so it also works when Temporal is away.

import { processSurroundings } from './client/options.ts';
import { explainCommand } from './explain/command.ts';

process.exitCode = await explainCommand(process.argv.slice(2), processSurroundings);
