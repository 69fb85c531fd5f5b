import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

export interface DefiniteAnswer {
  readonly status: number;
  readonly body: string;
}

export interface InsistentClientOptions {
  readonly apiUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /** Every answer that counts, a line of JSON each: what `npm run verify` reads. */
  readonly bookFile: string;
}

/** Longer than any lease, any outage and the look-ups of a payment that is lost in one. */
export const PATIENCE_MS = 900_000;
const ANSWER_WITHIN_MS = 40_000;
/** Between two tries: twice as long each time, up to a limit. */
const FIRST_WAIT_MS = 250;
const MOST_WAIT_MS = 2_000;

/**
 * A merchant's server that does what the interface tells it to: it repeats a request with the same
 * key until it has a definite answer, whatever became of the ones before.
 */
export class InsistentClient {
  asked = 0;
  repeated = 0;
  /** Requests that never got one. */
  readonly unanswered: string[] = [];
  private readonly options: InsistentClientOptions;
  private readonly open = new Set<Promise<unknown>>();

  constructor(options: InsistentClientOptions) {
    this.options = options;
  }

  /** How many orders wait for their answer. */
  get waiting(): number {
    return this.open.size;
  }

  /** Resolves when everything that was asked for until now has its answer. */
  async answered(): Promise<void> {
    await Promise.all(this.open);
  }

  /** Null when nothing definite came in time; it is among the {@link unanswered} then. */
  async post(
    path: string,
    body: object,
    key: string = randomUUID(),
  ): Promise<DefiniteAnswer | null> {
    this.asked += 1;
    const order = this.insist(path, body, key);
    this.open.add(order);
    try {
      return await order;
    } finally {
      this.open.delete(order);
    }
  }

  private async insist(path: string, body: object, key: string): Promise<DefiniteAnswer | null> {
    const giveUpAt = performance.now() + PATIENCE_MS;
    let last = 'nothing';
    let waitMs = FIRST_WAIT_MS;
    while (performance.now() < giveUpAt) {
      const answer = await this.once(path, body, key).catch((error: unknown) => {
        last = String(error);
        return null;
      });
      if (answer !== null && isDefinite(answer)) {
        appendFileSync(this.options.bookFile, `${JSON.stringify({ key, ...answer })}\n`);
        return answer;
      }
      if (answer !== null) last = `${answer.status} ${answer.body}`;
      this.repeated += 1;
      await sleep(waitMs);
      waitMs = Math.min(waitMs * 2, MOST_WAIT_MS);
    }
    this.unanswered.push(`${path} with key ${key}: last came ${last}`);
    return null;
  }

  private async once(path: string, body: object, key: string): Promise<DefiniteAnswer> {
    const { apiUrl, keyId, secret } = this.options;
    const response = await fetch(apiUrl + path, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`,
        'content-type': 'application/json',
        'idempotency-key': key,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    return { status: response.status, body: await response.text() };
  }
}

/** As the interface says: everything else may still change, and the same key finds out. */
function isDefinite({ status, body }: DefiniteAnswer): boolean {
  if (status >= 500 || status === 409 || status === 429) return false;
  const { errorCode, status: state } = JSON.parse(body || '{}') as Record<string, unknown>;
  const isOpen = state === 'PENDING' || state === 'ADVANCING';
  return errorCode !== 'payment_outcome_pending' && !isOpen;
}
