import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from './terminal.ts';

/** The API refused the request. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';
  readonly status: number;
  readonly errorCode: string;

  constructor(call: string, status: number, body: unknown) {
    const { errorCode = '', errorDescription = '' } = (body ?? {}) as Record<string, string>;
    super(`${call} was answered ${status} ${errorCode}: ${errorDescription}`);
    this.status = status;
    this.errorCode = errorCode;
  }
}

/** No usable answer arrived within `patienceMs`. */
class ApiOutOfReach extends Error {
  override readonly name = 'ApiOutOfReach';
}

export interface MerchantClientOptions {
  readonly apiUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /**
   * Time in ms for which a request is repeated, with the same Idempotency-Key, while the API is unreachable
   * or answers 409, 429 or 5xx. Default: 0, which means no repeat.
   */
  readonly patienceMs?: number;
  /** Whether a 409 (another call with the same key is running) is a refusal. Default: false. */
  readonly isConflictFinal?: boolean;
  readonly onRepeat?: (reason: string) => void;
}

export interface MerchantClient {
  get<Answer>(path: string): Promise<Answer>;
  /** `key` is the Idempotency-Key. Default: a new one for each call. */
  post<Answer>(path: string, body: object, key?: string): Promise<Answer>;
  delete(path: string): Promise<void>;
}

/** Longer than the slowest answer of the API. */
const ANSWER_WITHIN_MS = 40_000;
const BETWEEN_REPEATS_MS = 250;

/** An HTTP client as a merchant would write it from the OpenAPI document. */
export function createMerchantClient(options: MerchantClientOptions): MerchantClient {
  const { apiUrl, keyId, secret, patienceMs = 0, onRepeat = () => undefined } = options;
  const isFinal = (status: number): boolean => status === 409 && options.isConflictFinal === true;
  const authorization = `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;

  const ask = async (method: string, path: string, body?: object, key?: string) => {
    const headers = {
      authorization,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const giveUpAt = performance.now() + patienceMs;
    for (;;) {
      const answer = await once(`${apiUrl}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (answer.kind === 'answered') return answer.body;
      if (answer.kind === 'refused' || isFinal(answer.status)) {
        throw new ApiRefusal(path, answer.status, answer.body);
      }
      if (performance.now() > giveUpAt) {
        throw new ApiOutOfReach(`${method} ${apiUrl}${path}: ${answer.reason}`);
      }
      onRepeat(answer.reason);
      await sleep(BETWEEN_REPEATS_MS);
    }
  };

  return {
    get: async <Answer>(path: string) => (await ask('GET', path)) as Answer,
    post: async <Answer>(path: string, body: object, key: string = randomUUID()) =>
      (await ask('POST', path, body, key)) as Answer,
    delete: async (path) => {
      await ask('DELETE', path);
    },
  };
}

interface Answer {
  readonly kind: 'answered' | 'refused' | 'no answer';
  /** 0 when no answer arrived. */
  readonly status: number;
  readonly body: unknown;
  readonly reason: string;
}

async function once(url: string, request: RequestInit): Promise<Answer> {
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const response = await fetch(url, { ...request, signal });
    const text = await response.text();
    const { status } = response;
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const mayPass = status === 409 || status === 429 || status >= 500;
    const kind = mayPass ? 'no answer' : response.ok ? 'answered' : 'refused';
    return { kind, status, body, reason: `status ${status}` };
  } catch (error) {
    return { kind: 'no answer', status: 0, body: undefined, reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code ?? messageOf(error);
}
