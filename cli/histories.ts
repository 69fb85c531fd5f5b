// npm run histories -- --download <count>: takes histories from the Temporal server of TEMPORAL_ADDRESS, or from that of
// the running `npm start`, for `npm run replay`.

import { processSurroundings } from './command-line/options.ts';
import { historiesCommand } from './replay/download.ts';

process.exitCode = await historiesCommand(process.argv.slice(2), processSurroundings);
