import { DomainError } from '../../../domain/errors.ts';
import { outsideRequest } from '../../../runtime/request-scope.ts';

/** Time limit in ms to void an order. Less than the 3 s between `giveUp` and the 503. */
const WITHDRAW_WITHIN_MS = 2_000;

interface Order<Outcome> {
  readonly give: () => Promise<Outcome>;
  /** Voids the order unless its execution has begun. True if the order will never be executed. */
  readonly withdraw: () => Promise<boolean>;
}

/**
 * Starts the workflow of an order and waits for its outcome. Without a key, the order is voided if the start fails or
 * `giveUp` aborts; `pending` if it could not be voided within 2 s.
 */
export async function handOver<Outcome>(
  { give, withdraw }: Order<Outcome>,
  giveUp: AbortSignal | null,
  withdrawWithinMs: number = WITHDRAW_WITHIN_MS,
): Promise<Outcome | { kind: 'pending' }> {
  try {
    return await (giveUp === null ? give() : unlessAborted(giveUp, give));
  } catch (error) {
    if (giveUp === null || !mayHaveArrived(error)) throw error;
    if (await tryWithdraw(withdraw, withdrawWithinMs)) throw error;
    return { kind: 'pending' };
  }
}

async function tryWithdraw(withdraw: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  // Runs also after the request was answered 503. An order that is not voided could be executed in addition to
  // the caller's next request.
  const signal = AbortSignal.timeout(withinMs);
  return unlessAborted(signal, () => outsideRequest(withdraw)).catch(() => false);
}

/**
 * Returns the result of `work`. Throws `service_unavailable` when `signal` aborts. If `signal` has aborted
 * already, does not start `work`.
 */
async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const unavailable = () => new DomainError('service_unavailable');
  if (signal.aborted) throw unavailable();
  const done = new AbortController();
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(unavailable()), { signal: done.signal });
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    done.abort();
  }
}

/** True if the workflow may have received the order despite the error. False only for a refusal. */
function mayHaveArrived(error: unknown): boolean {
  return !(error instanceof DomainError) || error.code === 'service_unavailable';
}
