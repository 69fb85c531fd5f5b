import { createHash } from 'node:crypto';
import { digestOf } from '../../runtime/payload-digest.ts';

/** Fields of payloads and search attributes whose value can name a person or a product. */
const PRIVATE: ReadonlySet<string> = new Set(['productName', 'receiptId', 'ReceiptId']);
/** Fields of events outside of payloads: host names, and texts for the Web UI. */
const DROPPED: ReadonlySet<string> = new Set(['identity', 'userMetadata', 'memo']);
const SCRUBBED = 'scrubbed';

/** Returns the history as JSON without tokens, receipts, names of products and host names. */
export function scrubbed(json: unknown): unknown {
  // A payer's command has its token as id, so the token is also in the ids of updates.
  const tokens = [...new Set(tokensIn(json))];
  return scrub(json, { isPrivate: false, tokens });
}

function tokensIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  if (isPayload(value)) return tokensIn(valueOf(value.data));
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) =>
    name === 'paymentToken' && typeof member === 'string' ? [member] : tokensIn(member),
  );
}

interface Scrub {
  readonly isPrivate: boolean;
  readonly tokens: readonly string[];
}

function scrub(value: unknown, how: Scrub): unknown {
  if (typeof value === 'string') {
    if (how.isPrivate) return SCRUBBED;
    return how.tokens.reduce((text, token) => text.replaceAll(token, aliasOf(token)), value);
  }
  if (Array.isArray(value)) return value.map((member: unknown) => scrub(member, how));
  if (typeof value !== 'object' || value === null) return value;
  if (isPayload(value)) {
    const data = Buffer.from(JSON.stringify(scrub(valueOf(value.data), how)));
    return { ...value, data: data.toString('base64'), metadata: metadataFor(data, value) };
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !DROPPED.has(name))
      .map(([name, member]) => [
        name,
        scrub(member, { ...how, isPrivate: how.isPrivate || PRIVATE.has(name) }),
      ]),
  );
}

function aliasOf(token: string): string {
  return `${SCRUBBED}-${createHash('sha256').update(token).digest('hex').slice(0, 16)}`;
}

/** A digest that was wrong stays wrong. */
function metadataFor(scrubbedData: Buffer, { data, metadata }: Payload): Payload['metadata'] {
  const isRight = metadata.digest === digestOf(Buffer.from(data, 'base64')).toString('base64');
  return isRight ? { ...metadata, digest: digestOf(scrubbedData).toString('base64') } : metadata;
}

interface Payload {
  readonly data: string;
  readonly metadata: { readonly digest?: string };
}

const isPayload = (value: object): value is Payload =>
  'metadata' in value && 'data' in value && typeof value.data === 'string';

/** In a history a payload is JSON, in base64. */
const valueOf = (data: string): unknown =>
  JSON.parse(Buffer.from(data, 'base64').toString() || 'null');
