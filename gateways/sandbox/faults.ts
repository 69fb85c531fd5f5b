import { setTimeout as sleep } from 'node:timers/promises';
import { json, LOST } from './http.ts';
import type { GatewayAnswer, Reply } from './http.ts';

export const OPERATIONS = ['charge', 'lookup', 'methods', 'refund'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * - `decline`: the charge is declined and booked as declined. Only for `charge`.
 * - `delay`: the request is served after `delayMs`.
 * - `error_500`: the answer is a 500.
 * - `lose_answer`: the connection is cut instead of an answer.
 */
export const FAULTS = ['decline', 'delay', 'error_500', 'lose_answer'] as const;

/** Whether `error_500` and `lose_answer` carry out the request (`done`) or not (`none`). */
export const EFFECTS = ['done', 'none'] as const;

export interface Fault {
  readonly operation: Operation;
  readonly fault: (typeof FAULTS)[number];
  readonly effect: (typeof EFFECTS)[number];
  /** 0 for every other fault than `delay`. */
  readonly delayMs: number;
  /** How many requests the fault hits. */
  readonly count: number;
  /** From 0 to 1: the share of matching requests that the fault hits. */
  readonly chance: number;
  /** Null matches every subscription. */
  readonly subscriptionId: string | null;
  /** Null matches every payment method. */
  readonly paymentMethodId: string | null;
}

/** The subscription and the payment method of a request, where the request names them. */
export interface FaultTarget {
  readonly subscriptionId: string | null;
  readonly paymentMethodId: string | null;
}

/** How one request is served without faults. */
export interface Service {
  readonly work: () => Promise<GatewayAnswer>;
  /** Makes `work` decline. Without it the fault `decline` has no effect. */
  readonly decline?: () => Promise<void>;
}

/** A fault, and how often it has hit. */
export interface ServedFault extends Fault {
  readonly hits: number;
}

export interface Faults {
  /** Adds a fault. Faults of one operation hit in the order in which they were added. */
  add(fault: Fault): void;
  /** The faults that can still hit, in the order in which they were added. */
  list(): ServedFault[];
  clear(): void;
  /** Serves one request. The first matching fault is applied, and its count goes down by 1. */
  serve(operation: Operation, target: FaultTarget, service: Service): Promise<Reply>;
}

/**
 * Faults set at the control endpoint. They are kept in memory, not in the book, so a restart clears them.
 * `closing` ends delays early; the delayed requests are then not served.
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
