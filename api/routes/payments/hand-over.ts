import { DomainError } from '../../../domain/errors.ts';

/** For the withdrawal of what could not be handed over; less than the caller has left. */
const WITHDRAW_WITHIN_MS = 2_000;

/** An order that moves money, and how it is taken back while nobody has it in hand. */
interface Order<Outcome> {
  readonly give: () => Promise<Outcome>;
  /** True: it will never be carried out. */
  readonly withdraw: () => Promise<boolean>;
}

/**
 * Gives an order and waits for its outcome. A call without a key, which nobody can repeat, has
 * `giveUp`: its order is withdrawn before the caller hears that it could not be handed over, or had no
 * outcome until then, so that asking anew does not do it twice. Pending when it could not be
 * withdrawn, or when nobody knows. Rules: D-17, D-40.
 *
 * @throws whatever `give` throws; `service_unavailable` when it was given up.
 */
export async function handOver<Outcome>(
  { give, withdraw }: Order<Outcome>,
  giveUp: AbortSignal | null,
  withdrawWithinMs: number = WITHDRAW_WITHIN_MS,
): Promise<Outcome | { kind: 'pending' }> {
  try {
    return await (giveUp === null ? give() : orLate(giveUp, give));
  } catch (error) {
    if (giveUp === null || !isAway(error)) throw error;
    if (await isWithdrawn(withdraw, withdrawWithinMs)) throw error;
    return { kind: 'pending' };
  }
}

async function isWithdrawn(withdraw: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  return orLate(AbortSignal.timeout(withinMs), withdraw).catch(() => false);
}

/** What `work` comes to, or `service_unavailable` as soon as `late` tells; then it is not begun. */
async function orLate<T>(late: AbortSignal, work: () => Promise<T>): Promise<T> {
  const isLate = () => new DomainError('service_unavailable');
  if (late.aborted) throw isLate();
  const done = new AbortController();
  const tooLate = new Promise<never>((_resolve, reject) => {
    late.addEventListener('abort', () => reject(isLate()), { signal: done.signal });
  });
  try {
    return await Promise.race([work(), tooLate]);
  } finally {
    done.abort();
  }
}

/** Anything but a refusal leaves open whether it was handed over. */
function isAway(error: unknown): boolean {
  return !(error instanceof DomainError) || error.code === 'service_unavailable';
}
