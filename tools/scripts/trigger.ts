// npm run trigger makes an event happen: it does through the API what a merchant does, and on the hosted pages what a
// payer does. It prints the events that follow.

import { Argument } from 'commander';
import { findDemoFile } from '../../cli/command-line/demo-file.ts';
import { commandLine } from '../../cli/command-line/options.ts';
import { print, runScript } from '../../cli/command-line/terminal.ts';
import { loadEmbeddedConfig } from '../config.ts';
import { merchantAccess } from './client/merchant-access.ts';
import { eventLine } from './listen/event-line.ts';
import { RECIPES, REPORTED_WITHIN_MS } from './trigger/recipes.ts';
import type { EventType } from './trigger/scene.ts';

const [type] = commandLine('run trigger', 'Makes an event of a test merchant happen.')
  .addArgument(new Argument('<type>', 'type of the event').choices(Object.keys(RECIPES)))
  .parse().processedArgs as [EventType];

await runScript(async () => {
  const { apiUrl, client: open } = merchantAccess();
  const client = open();
  const found = findDemoFile(loadEmbeddedConfig().dataDir);
  const { metadata } = await client.getEvents({ query: { after: 'now' } });
  await RECIPES[type]({ client, demo: found?.apiUrl === apiUrl ? found : undefined });
  const signal = AbortSignal.timeout(REPORTED_WITHIN_MS);
  for await (const { events } of client.feed({ after: metadata.after }, { signal })) {
    for (const item of events) print(eventLine(item));
    if (events.some(({ eventType }) => eventType === type)) return 0;
  }
  return 1;
});
