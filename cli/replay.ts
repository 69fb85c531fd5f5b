// npm run replay -- <folder>: replays downloaded histories on the workflows of this build, before a deploy.

import { processSurroundings } from './command-line/options.ts';
import { replayCommand } from './replay/command.ts';

process.exit(await replayCommand(process.argv.slice(2), processSurroundings));
