import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { exchange } from '../../scripts/client/merchant-client.ts';
import type { MerchantRequest } from '../../scripts/client/merchant-client.ts';

export interface DefiniteAnswer {
  readonly status: number;
  readonly body: string;
}

export interface RetryingClientOptions {
  readonly apiUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /** File to which every definite answer is written, one JSON object a line, for `npm run verify`. */
  readonly bookFile: string;
}

/** Time limit in ms for a definite answer: longer than any lease, any outage and the first look-ups of a payment. */
export const DEFINITE_WITHIN_MS = 900_000;
/** First and longest wait between two tries, in ms. The wait doubles after each try. */
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 2_000;

/** Repeats a request with the same key until the answer is definite, as the API requires of merchants. */
export class RetryingClient {
  asked = 0;
  repeated = 0;
  readonly unanswered: string[] = [];
  private readonly options: RetryingClientOptions;
  private readonly open = new Set<Promise<unknown>>();

  constructor(options: RetryingClientOptions) {
    this.options = options;
  }

  get waiting(): number {
    return this.open.size;
  }

  /** Resolves when every request sent before this call is answered or has reached its time limit. */
  async answered(): Promise<void> {
    await Promise.all(this.open);
  }

  /** Null, and an entry in {@link unanswered}, without a definite answer in {@link DEFINITE_WITHIN_MS}. */
  post(path: string, body: object, key: string = randomUUID()): Promise<DefiniteAnswer | null> {
    return this.ask({ method: 'POST', path, body, key });
  }

  /** As {@link post}, without an entry in the book. */
  get(path: string): Promise<DefiniteAnswer | null> {
    return this.ask({ method: 'GET', path });
  }

  private async ask(request: MerchantRequest): Promise<DefiniteAnswer | null> {
    this.asked += 1;
    const answered = this.askUntilDefinite(request);
    this.open.add(answered);
    try {
      return await answered;
    } finally {
      this.open.delete(answered);
    }
  }

  private async askUntilDefinite(request: MerchantRequest): Promise<DefiniteAnswer | null> {
    const { path, key } = request;
    const giveUpAt = performance.now() + DEFINITE_WITHIN_MS;
    let last = 'nothing';
    let waitMs = FIRST_WAIT_MS;
    while (performance.now() < giveUpAt) {
      const answer = await exchange(this.options, request).catch((error: unknown) => {
        last = String(error);
        return null;
      });
      if (answer !== null && isDefinite(answer)) {
        if (key !== undefined)
          appendFileSync(this.options.bookFile, `${JSON.stringify({ key, ...answer })}\n`);
        return answer;
      }
      if (answer !== null) last = `${answer.status} ${answer.body}`;
      this.repeated += 1;
      await sleep(waitMs);
      waitMs = Math.min(waitMs * 2, MAX_WAIT_MS);
    }
    this.unanswered.push(`${path} with key ${key}: the last answer was ${last}`);
    return null;
  }
}

/** True if a repeat with the same key would return the same answer, by the rules of the API. */
function isDefinite({ status, body }: DefiniteAnswer): boolean {
  if (status >= 500 || status === 409 || status === 429) return false;
  const { errorCode, status: state } = JSON.parse(body || '{}') as Record<string, unknown>;
  const isOpen = state === 'PENDING' || state === 'ADVANCING';
  return errorCode !== 'payment_outcome_pending' && !isOpen;
}
