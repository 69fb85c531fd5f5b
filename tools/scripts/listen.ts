// npm run listen prints each event of a merchant as it happens, and forwards it to a program on this machine. It reads
// the feed, so it needs no endpoint and no public address.

import { InvalidArgumentError } from 'commander';
import { commandLine, instantOption } from '../../cli/command-line/options.ts';
import { print, runScript, styled } from '../../cli/command-line/terminal.ts';
import { merchantAccess } from './client/merchant-access.ts';
import { listenToFeed } from './listen/run.ts';
import { openState } from './listen/state.ts';

const { to, since } = commandLine('run listen', 'Prints and forwards the events of a merchant.')
  .option('--to <url>', 'post each event here, signed', webUrl)
  .option(
    '--since <time>',
    'oldest, now, or an instant. Default: where the last run ended',
    sinceOf,
  )
  .addHelpText(
    'after',
    '\nThe merchant is that of API_URL, KEY_ID and SECRET, else that of npm start.',
  )
  .parse()
  .opts<{ to?: string; since?: number | 'now' }>();

await runScript(async () => {
  const { apiUrl, keyId, stateFile, client } = merchantAccess();
  const { secret, after, save } = openState(stateFile, `${apiUrl} ${keyId}`);
  let isAway = false;
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  print(
    styled('dim', `· listening to ${apiUrl} as ${keyId}; Ctrl-C ends it, the next run goes on`),
  );
  print(
    styled('dim', `· signing secret ${secret}${to === undefined ? '' : `, forwarding to ${to}`}`),
  );
  return listenToFeed({
    client: client({
      patienceMs: Number.POSITIVE_INFINITY,
      onRepeat: ({ reason }) => {
        if (!isAway) print(styled('yellow', `· ${reason}; reconnecting`));
        isAway = true;
      },
      fetch: async (...request) => {
        const answer = await fetch(...request);
        if (isAway && answer.ok) print(styled('green', '· connected again; nothing was missed'));
        isAway &&= !answer.ok;
        return answer;
      },
    }),
    secret,
    after: since === undefined ? after : since === 'now' ? 'now' : undefined,
    sinceAt: typeof since === 'number' ? since : 0,
    to,
    signal: stop.signal,
    print,
    save,
  });
});

function sinceOf(text: string): number | 'now' {
  if (text === 'now') return text;
  return text === 'oldest' ? 0 : instantOption(text);
}

function webUrl(text: string): string {
  if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('Give a URL like http://127.0.0.1:3000/webhooks.');
}
