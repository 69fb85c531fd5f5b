import { setTimeout as sleep } from 'node:timers/promises';
import { json, LOST } from './http.ts';
import type { Answer, Reply } from './http.ts';

export const OPERATIONS = ['charge', 'lookup', 'methods', 'refund'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * - `decline`: the charge is declined and booked as such; of `charge` only;
 * - `delay`: nothing happens for a while, then the request is served;
 * - `error_500`: the answer is a 500;
 * - `lose_answer`: the connection is cut instead of an answer.
 */
export const FAULTS = ['decline', 'delay', 'error_500', 'lose_answer'] as const;

/** Whether the request is carried out all the same before the answer is spoiled. */
export const EFFECTS = ['done', 'none'] as const;

export interface Fault {
  readonly operation: Operation;
  readonly fault: (typeof FAULTS)[number];
  readonly effect: (typeof EFFECTS)[number];
  /** Of `delay` only. */
  readonly delayMs: number;
  /** How many requests it hits. */
  readonly count: number;
  /** From 0 to 1: the share of matching requests that it hits. */
  readonly chance: number;
  /** Null hits any. */
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
}

/** Whose request it is, as far as the request tells. */
export interface FaultTarget {
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
}

/** One request as it would be served without faults. */
export interface Service {
  readonly work: () => Promise<Answer>;
  /** Makes `work` decline; where it cannot, a `decline` is no fault. */
  readonly decline?: () => Promise<void>;
}

/** A fault that was asked for, and how often it has hit since. */
export interface ServedFault extends Fault {
  readonly hits: number;
}

export interface Faults {
  /** Asked for last, served last: faults of one operation hit in the order they were added. */
  add(fault: Fault): void;
  /** Those that still can hit, in the order they were added. */
  list(): ServedFault[];
  clear(): void;
  /** Serves one request through the first fault that matches, if any, and counts that down. */
  serve(operation: Operation, target: FaultTarget, service: Service): Promise<Reply>;
}

/**
 * Faults asked for at the control endpoint. They are a property of this process, not of the book: a
 * restart clears them. `closing` ends delays early; what waited is then not served.
 */
export function createFaults(closing: AbortSignal): Faults {
  let armed: { fault: Fault; left: number }[] = [];

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
    },
    serve: async (operation, target, { work, decline }) => {
      const fault = take(operation, target);
      if (fault === undefined) return work();
      if (fault.fault === 'decline') {
        await decline?.();
        return work();
      }
      if (fault.fault === 'delay') {
        await sleep(fault.delayMs, undefined, { signal: closing });
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
