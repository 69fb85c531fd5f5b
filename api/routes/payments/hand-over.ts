import { DomainError } from '../../../domain/errors.ts';

/** Time limit for voiding an order. Less than the 3 s until the caller is answered 503. */
const WITHDRAW_WITHIN_MS = 2_000;

/** An order that moves money. */
interface Order<Outcome> {
  /** Hands the order to its workflow and waits for the outcome. */
  readonly give: () => Promise<Outcome>;
  /** Voids the order unless its execution has begun. True: the order will never be executed. */
  readonly withdraw: () => Promise<boolean>;
}

/**
 * Hands an order to its workflow and waits for the outcome. `giveUp` is null for a call with an
 * Idempotency-Key, because the caller can repeat it. A call without a key cannot be repeated. Its order is
 * voided when the hand-over fails or when no outcome is known at `giveUp`, so that a new request does not
 * execute the order twice. The result is `pending` when the order could not be voided, or when the
 * database does not answer within the time limit. Rules: D-17, D-40.
 *
 * @throws the error of `give` when there is a key, when it is a refusal, or when the order was voided;
 * `service_unavailable` when the order was voided at `giveUp`.
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
  return unlessAborted(AbortSignal.timeout(withinMs), withdraw).catch(() => false);
}

/**
 * The result of `work`. Throws `service_unavailable` as soon as `signal` aborts. Does not start `work`
 * when `signal` has already aborted.
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

/** True when the error leaves open whether the workflow got the order. Only a refusal rules that out. */
function mayHaveArrived(error: unknown): boolean {
  return !(error instanceof DomainError) || error.code === 'service_unavailable';
}
