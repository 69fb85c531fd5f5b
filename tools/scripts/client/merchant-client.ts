import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../cli/command-line/terminal.ts';

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

export type MerchantClient = ReturnType<typeof createMerchantClient>;

/** Longer than the slowest answer of the API. */
const ANSWER_WITHIN_MS = 40_000;
const BETWEEN_REPEATS_MS = 250;

export interface MerchantRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: object | undefined;
  /** The Idempotency-Key. */
  readonly key?: string | undefined;
}

/** Sends a request once. Throws if no answer arrives within 40 s. */
export async function exchange(
  { apiUrl, keyId, secret }: Pick<MerchantClientOptions, 'apiUrl' | 'keyId' | 'secret'>,
  { method, path, body, key }: MerchantRequest,
): Promise<{ status: number; body: string }> {
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  return { status: response.status, body: await response.text() };
}

/** An HTTP client as a merchant would write it from the OpenAPI document. */
export function createMerchantClient(options: MerchantClientOptions) {
  const { patienceMs = 0, isConflictFinal = false, onRepeat = () => undefined } = options;
  const isFinal = (status: number): boolean =>
    status === 409 ? isConflictFinal : status !== 429 && status < 500;

  const ask = async (request: MerchantRequest): Promise<unknown> => {
    const giveUpAt = performance.now() + patienceMs;
    for (;;) {
      const answer = await exchange(options, request).catch(reasonOf);
      if (typeof answer !== 'string' && isFinal(answer.status)) {
        const { status, body } = answer;
        const parsed: unknown = body === '' ? undefined : JSON.parse(body);
        if (status >= 200 && status < 300) return parsed;
        throw new ApiRefusal(request.path, status, parsed);
      }
      const reason = typeof answer === 'string' ? answer : `status ${answer.status}`;
      if (performance.now() > giveUpAt) {
        throw new Error(`${request.method} ${options.apiUrl}${request.path}: ${reason}`);
      }
      onRepeat(reason);
      await sleep(BETWEEN_REPEATS_MS);
    }
  };

  return {
    get: async <Answer>(path: string) => (await ask({ method: 'GET', path })) as Answer,
    /** `key` is the Idempotency-Key. Default: a new one for each call. */
    post: async <Answer>(path: string, body: object, key: string = randomUUID()) =>
      (await ask({ method: 'POST', path, body, key })) as Answer,
    delete: async (path: string) => {
      await ask({ method: 'DELETE', path });
    },
  };
}

function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code ?? messageOf(error);
}
