import type { ErrorCode, Error as ErrorBody } from './types.gen.ts';

export interface ClientSettings {
  /** Address of the API, for example `https://billing.example`. */
  readonly apiUrl: string;
  /** User and password of HTTP Basic. */
  readonly keyId: string;
  readonly secret: string;
  /** Time in ms for which a call is repeated while it has no definite answer. Default: 60,000. */
  readonly patienceMs?: number;
  /** Longest wait in ms for one answer. Default: 40,000, more than the API takes. */
  readonly timeoutMs?: number;
  /** Called before the wait for each repeat. */
  readonly onRepeat?: (repeat: Repeat) => void;
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  /** Default: a new key for each call. Give your own key if the call must survive a restart of your program. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

export interface Repeat {
  readonly path: string;
  readonly reason: string;
  readonly waitMs: number;
}

/** Method, path, and whether the operation takes an Idempotency-Key. */
export type Operation = readonly [method: string, path: string, isKeyed: boolean];

export interface Input {
  readonly path?: object;
  readonly query?: object;
  readonly body?: unknown;
}

/** The API refused the call, or gave no definite answer until the patience ended. */
export class PerennialError extends Error {
  override readonly name = 'PerennialError';
  /** HTTP status of the last answer. Null if there was none. */
  readonly status: number | null;
  /** Null if the last answer was not one of the API. */
  readonly errorCode: ErrorCode | null;
  readonly requestId: string | null;
  /** The key that was sent. The same call with this key is executed at most once. */
  readonly idempotencyKey: string | null;

  constructor(call: string, attempt: Attempt, idempotencyKey: string | null) {
    const { answer, reason, cause } = attempt;
    super(`${call}: ${reason}`, { cause });
    this.status = answer?.status ?? null;
    this.errorCode = attempt.error?.errorCode ?? null;
    this.requestId = answer?.headers.get('request-id') ?? null;
    this.idempotencyKey = idempotencyKey;
  }
}

interface Attempt {
  readonly answer?: Response;
  readonly value?: unknown;
  readonly error?: ErrorBody | undefined;
  readonly reason: string;
  readonly cause?: unknown;
}

/** A misspelled field is refused, so that none is lost without a word. */
const BODY_HEADERS = { 'content-type': 'application/json', 'unknown-fields': 'refuse' };

const PATIENCE_MS = 60_000;
const TIMEOUT_MS = 40_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;

/** Sends a call, and repeats it with the same key while that is safe and may change the answer. */
export async function send(
  settings: ClientSettings,
  [method, template, isKeyed]: Operation,
  { path = {}, query = {}, body }: Input,
  { idempotencyKey, signal }: CallOptions,
): Promise<unknown> {
  const values = path as Record<string, string>;
  const place = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''));
  const key = isKeyed ? (idempotencyKey ?? crypto.randomUUID()) : null;
  const request = {
    method,
    // A redirected POST would become a GET.
    redirect: 'manual',
    headers: {
      authorization: `Basic ${btoa(`${settings.keyId}:${settings.secret}`)}`,
      ...(body === undefined ? {} : BODY_HEADERS),
      ...(key === null ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  } as const;
  const url = settings.apiUrl.replace(/\/$/, '') + place + queryText(query);
  const giveUpAt = Date.now() + (settings.patienceMs ?? PATIENCE_MS);
  for (let repeats = 0; ; repeats += 1) {
    const attempt = await attemptOnce(settings, url, request, signal);
    if (attempt.answer?.ok === true && !('cause' in attempt)) return attempt.value;
    signal?.throwIfAborted();
    const waitMs = waitBefore(repeats, attempt.answer);
    const isSafe = method === 'GET' || isKeyed || attempt.answer?.status === 429;
    if (!isSafe || isDefinite(attempt) || Date.now() + waitMs > giveUpAt) {
      throw new PerennialError(`${method} ${place}`, attempt, key);
    }
    settings.onRepeat?.({ path: place, reason: attempt.reason, waitMs });
    await wait(waitMs, signal);
  }
}

async function attemptOnce(
  { fetch: fetchOnce = fetch, timeoutMs = TIMEOUT_MS }: ClientSettings,
  url: string,
  request: RequestInit,
  given: AbortSignal | undefined,
): Promise<Attempt> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = given === undefined ? timeout : AbortSignal.any([given, timeout]);
  let answer: Response | undefined;
  try {
    answer = await fetchOnce(url, { ...request, signal });
    const text = await answer.text();
    if (answer.ok) return { answer, value: text === '' ? undefined : JSON.parse(text), reason: '' };
    const error = errorIn(text);
    const words = error === undefined ? '' : ` ${error.errorCode}: ${error.errorDescription}`;
    return { answer, error, reason: `${answer.status}${words}` };
  } catch (cause) {
    const inner = (cause as { cause?: { code?: string; message?: string } }).cause;
    const reason = inner?.code ?? inner?.message ?? String(cause);
    return { ...(answer && { answer }), reason: `no answer (${reason})`, cause };
  }
}

function errorIn(text: string): ErrorBody | undefined {
  try {
    const body = JSON.parse(text) as ErrorBody | null;
    return typeof body?.errorCode === 'string' ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a repeat would be answered alike. */
function isDefinite({ answer, error, cause }: Attempt): boolean {
  if (answer === undefined || cause !== undefined) return false;
  const code = error?.errorCode;
  const isPending = code === 'payment_outcome_pending' || code === 'idempotency_key_in_use';
  return answer.status < 500 && answer.status !== 429 && !isPending;
}

/** `Retry-After` in ms, in seconds or as a date. Without it: 0.25 s to 8 s, rising, with jitter. */
function waitBefore(repeats: number, answer: Response | undefined): number {
  const header = answer?.headers.get('retry-after') ?? '';
  const seconds = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  if (!Number.isNaN(seconds)) return Math.max(0, seconds);
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** repeats) * (0.5 + Math.random() / 2);
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done, fail) => {
    const stop = (): void => {
      clearTimeout(timer);
      fail(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      done();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** The values of a list are separated by commas. */
function queryText(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const texts = given.map(([name, value]): [string, string] => [name, String(value)]);
  return texts.length === 0 ? '' : `?${new URLSearchParams(texts).toString()}`;
}
