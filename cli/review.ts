// npm run review: operator command for payments and refunds that need manual review. The command uses the
// database of DATABASE_URL and the server of TEMPORAL_ADDRESS, or those of the running `npm start`. If
// Temporal is unreachable, the command still stores the decision, and the maintenance sweep applies it later.

import { processSurroundings } from './command-line/options.ts';
import { reviewCommand } from './review/command.ts';

process.exitCode = await reviewCommand(process.argv.slice(2), processSurroundings);
