// npm run simulate -- <merchant id>: when and what a merchant's subscriptions would be charged under other settings.
// Reads only the database of DATABASE_URL, or that of the running `npm start`.

import { processSurroundings } from './command-line/options.ts';
import { simulateCommand } from './simulate/command.ts';

process.exitCode = await simulateCommand(process.argv.slice(2), processSurroundings);
