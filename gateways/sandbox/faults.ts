import { setTimeout as sleep } from 'node:timers/promises';
import { json, LOST } from '../http-server/http.ts';
import type { GatewayAnswer, Reply } from '../http-server/http.ts';

export const OPERATIONS = ['charge', 'lookup', 'methods', 'refund', 'refund_lookup'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * `decline`: only for `charge`. `delay`: served after `delayMs`. `lose_answer`: the server closes the connection.
 * `pending`: the refund is decided later.
 */
export const FAULTS = ['decline', 'delay', 'error_500', 'lose_answer', 'pending'] as const;

/** For `error_500` and `lose_answer`. `done`: the request is executed before the fault. `none`: it is not executed. */
export const EFFECTS = ['done', 'none'] as const;

export interface Fault {
  readonly operation: Operation;
  readonly fault: (typeof FAULTS)[number];
  readonly effect: (typeof EFFECTS)[number];
  /** 0 for a fault other than `delay`. */
  readonly delayMs: number;
  readonly count: number;
  /** From 0 to 1: the share of matching requests to which the fault applies. */
  readonly chance: number;
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
}

/** The subscription and the payment method of a request; null if the request has none. */
export interface FaultTarget {
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
}

/** The functions that serve one request. `work` executes the request as if there were no fault. */
export interface Service {
  readonly work: () => Promise<GatewayAnswer>;
  /** Makes `work` decline the charge. If absent, the fault `decline` has no effect. */
  readonly decline?: () => Promise<void>;
  /** Makes `work` leave the refund undecided. If absent, the fault `pending` has no effect. */
  readonly leavePending?: () => void;
}

/** A fault with the number of requests to which it has applied. */
export interface ServedFault extends Fault {
  readonly hits: number;
}

export interface Faults {
  /** Adds a fault. Of several matching faults, the one that was added first applies. */
  add(fault: Fault): void;
  /** Returns the faults that are not used up, in the order in which they were added. */
  list(): ServedFault[];
  /** Removes every fault. A request that a `delay` holds is served now. */
  clear(): void;
  /** Serves one request. Applies the first matching fault, and reduces its remaining count by 1. */
  serve(operation: Operation, target: FaultTarget, service: Service): Promise<Reply>;
}

/**
 * Stores the faults that the control endpoint adds, and applies these faults. The faults exist only in
 * memory, so a restart clears them. If `closing` aborts, delayed requests fail.
 */
export function createFaults(closing: AbortSignal): Faults {
  let armed: { fault: Fault; left: number }[] = [];
  let release = new AbortController();

  const take = (operation: Operation, target: FaultTarget): Fault | undefined => {
    const hit = armed.find(
      ({ fault }) =>
        matches(fault, operation, target) && (fault.chance >= 1 || Math.random() < fault.chance),
    );
    if (hit === undefined) return undefined;
    hit.left -= 1;
    if (hit.left === 0) armed = armed.filter((each) => each !== hit);
    return hit.fault;
  };

  return {
    add: (fault) => void armed.push({ fault, left: fault.count }),
    list: () => armed.map(({ fault, left }) => ({ ...fault, hits: fault.count - left })),
    clear: () => {
      armed = [];
      release.abort();
      release = new AbortController();
    },
    serve: async (operation, target, { work, decline, leavePending }) => {
      const fault = take(operation, target);
      if (fault === undefined) return work();
      if (fault.fault === 'decline') {
        await decline?.();
        return work();
      }
      if (fault.fault === 'pending') {
        leavePending?.();
        return work();
      }
      if (fault.fault === 'delay') {
        const { signal: released } = release;
        await sleep(fault.delayMs, undefined, {
          signal: AbortSignal.any([closing, released]),
        }).catch((error: unknown) => {
          if (!released.aborted) throw error;
        });
        return work();
      }
      if (fault.effect === 'done') await work();
      return fault.fault === 'lose_answer' ? LOST : json(500, { error: 'fault_asked_for' });
    },
  };
}

function matches(fault: Fault, operation: Operation, target: FaultTarget): boolean {
  return (
    fault.operation === operation &&
    (fault.subscriptionId === null || fault.subscriptionId === target.subscriptionId) &&
    (fault.paymentMethodId === null || fault.paymentMethodId === target.paymentMethodId)
  );
}
