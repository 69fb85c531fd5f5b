// npm run explain -- <subscription id>: says what a subscription does next and why, and why each charge was made.
// Reads only the database of DATABASE_URL, or that of the running `npm start`, so it also works when Temporal is away.

import { processSurroundings } from './command-line/options.ts';
import { explainCommand } from './explain/command.ts';

// A reader such as `head` may close the pipe before the end.
process.stdout.on('error', () => process.exit());
// A replay of a history leaves threads of the Temporal worker behind.
process.exit(await explainCommand(process.argv.slice(2), processSurroundings));
