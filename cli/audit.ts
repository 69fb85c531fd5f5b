// npm run audit: lists what operators did: every command that changed something, and every change of a subscription
// that an operator ordered by a signal in Temporal's Web UI or by a review. The command uses the database of
// DATABASE_URL, or that of the running `npm start`. It changes nothing.

import { auditCommand } from './audit/command.ts';
import { processSurroundings } from './command-line/options.ts';

process.exitCode = await auditCommand(process.argv.slice(2), processSurroundings);
