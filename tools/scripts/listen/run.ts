import { Buffer } from 'node:buffer';
import { signatureHeaders } from '../../../activities/webhooks/sender.ts';
import { PerennialError, verifyWebhook } from '../../../client/index.ts';
import type { Client, FeedItem } from '../../../client/index.ts';
import { errorText } from '../../../cli/command-line/terminal.ts';
import { eventLine } from './event-line.ts';
import { forward } from './forward.ts';

export interface ListenOptions {
  readonly client: Client;
  readonly secret: string;
  /** Cursor, or `now`. Undefined: the oldest event. */
  readonly after: string | undefined;
  /** Epoch ms. Events that happened earlier are passed over. */
  readonly sinceAt: number;
  readonly to: string | undefined;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly save: (state: { after: string }) => void;
}

const EXPIRED = `
Nothing was passed over silently: events after the saved cursor may be missing. Read your records with the
API, then run one of
  npm run listen -- --since oldest   prints every event that is still kept
  npm run listen -- --since now      prints only what happens from now on`;

/** Prints and forwards events until `signal` aborts. Saves the cursor after each page. Returns an exit code. */
export async function listenToFeed(options: ListenOptions): Promise<number> {
  const { client, after, sinceAt, signal, print, save } = options;
  try {
    const query = after === undefined ? {} : { after };
    for await (const page of client.feed(query, { signal })) {
      for (const item of page.events) {
        if (item.eventTime >= sinceAt) print(await examine(item, options));
      }
      save({ after: page.after });
    }
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof PerennialError)) throw error;
    print(errorText(error.message));
    if (error.errorCode === 'cursor_expired') print(EXPIRED);
    return 1;
  }
}

/** Signs the bytes of an event, verifies them as a receiver would, and forwards them. Returns a line. */
async function examine(item: FeedItem, { secret, to }: ListenOptions): Promise<string> {
  const { body, eventId } = item;
  const bytes = Buffer.from(body);
  const headers = signatureHeaders({ eventId, sentAt: Date.now(), body: bytes, signers: [secret] });
  const event = verifyWebhook({ body: bytes, headers, secret });
  const line = `${eventLine({ ...item, event })}  verified`;
  return to === undefined ? line : `${line}  → ${await forward(to, headers, body)}`;
}
