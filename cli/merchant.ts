// npm run merchant: operator command for merchants, their API credentials, settings and gateways. The command
// uses the database of DATABASE_URL with CREDENTIAL_PEPPER and ENCRYPTION_KEY, or the database of the running
// `npm start`.

import { processSurroundings } from './command-line/options.ts';
import { merchantCommand } from './merchant/command.ts';

process.exitCode = await merchantCommand(process.argv.slice(2), processSurroundings);
