import PQueue from 'p-queue';

export interface Pace {
  /** @throws PacedOut if the rate limit allows no request within 2 s, or if `signal` aborts first. */
  take(method: string, signal?: AbortSignal | null): Promise<void>;
  /** Call this when Stripe has refused a request because of its rate limit. Later requests then wait 0.5 to 1 s. */
  backOff(): void;
}

/** The error code of {@link PacedOut}, which callers treat like Node's codes of a failed connect. */
export const PACED_OUT = 'PACED_OUT';

/** A request that was not sent, because the account's rate limit did not allow it in time. */
class PacedOut extends Error {
  override readonly name = 'PacedOut';
  readonly code = PACED_OUT;

  constructor() {
    super('the rate limit of the account did not allow the request in time');
  }
}

/**
 * Requests in a second, of reads and of writes, for one account in one process. Stripe allows about 100 of each in
 * live mode and 25 in test mode: enough for two processes.
 */
const REQUESTS_PER_SECOND = { live: 45, test: 12 } as const;

/** The longest wait for the rate limit, in ms. The request's time limit includes this wait. */
const WAIT_MS = 2_000;

export function createPace(
  mode: keyof typeof REQUESTS_PER_SECOND,
  onBackOff: () => void = () => undefined,
): Pace {
  const queueOf = () =>
    new PQueue({ interval: 1_000, intervalCap: REQUESTS_PER_SECOND[mode], strict: true });
  const queues = { reads: queueOf(), writes: queueOf() };
  let resume: NodeJS.Timeout | undefined;
  return {
    async take(method, signal) {
      const queue = queues[method === 'GET' ? 'reads' : 'writes'];
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(), WAIT_MS);
      try {
        const signals = signal ? [limit.signal, signal] : [limit.signal];
        await queue.add(() => undefined, { signal: AbortSignal.any(signals) });
      } catch {
        throw new PacedOut();
      } finally {
        clearTimeout(timer);
      }
    },

    backOff() {
      onBackOff();
      for (const queue of Object.values(queues)) queue.pause();
      clearTimeout(resume);
      resume = setTimeout(
        () => {
          for (const queue of Object.values(queues)) queue.start();
        },
        500 + Math.random() * 500,
      );
      resume.unref();
    },
  };
}
