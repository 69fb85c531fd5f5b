import {
  object,
  oneOf,
  optionalText,
  wholeNumber,
  wrong,
} from '../../gateways/http-server/fields.ts';
import type { Fields } from '../../gateways/http-server/fields.ts';
import { matches } from './path-pattern.ts';

/**
 * `lose_answer`: forwarded, then closed without an answer. `lose_request`: closed, not forwarded. `reset`: RST.
 * `hang`: no answer. `answer`: that of the fault. `delay`: forwarded after `delayMs`. `add_headers`: forwarded with
 * the fault's headers.
 */
const FAULTS = [
  'lose_answer',
  'lose_request',
  'reset',
  'hang',
  'answer',
  'delay',
  'add_headers',
] as const;

/** For `reset`, `hang` and `answer`. `done`: the request is forwarded before the fault. */
export const EFFECTS = ['done', 'none'] as const;

export interface Fault {
  readonly fault: (typeof FAULTS)[number];
  readonly effect: (typeof EFFECTS)[number];
  readonly method: string | null;
  /** A path in which `*` stands for one segment, such as `/v1/charges/*`. Null matches every path. */
  readonly path: string | null;
  readonly count: number;
  readonly chance: number;
  readonly delayMs: number;
  /** Time in ms after which the fault ends; null: it ends only with its count. */
  readonly forMs: number | null;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ServedFault extends Fault {
  readonly hits: number;
}

export interface Faults {
  /** Adds a fault. A request gets the first added fault that matches and is not used up. */
  add(fault: Fault): void;
  /** All faults since the last `clear`, in the order in which they were added. */
  list(): ServedFault[];
  clear(): void;
  /** Returns the fault of this request and counts a hit; null if no fault matches. */
  take(method: string, path: string): Fault | null;
}

/** Faults exist only in memory. `random` returns a number from 0 to below 1. */
export function createFaults(random: () => number = Math.random): Faults {
  let armed: { readonly fault: Fault; readonly endsAt: number; hits: number }[] = [];
  return {
    add: (fault) => {
      const endsAt = performance.now() + (fault.forMs ?? Infinity);
      armed.push({ fault, endsAt, hits: 0 });
    },
    list: () => armed.map(({ fault, hits }) => ({ ...fault, hits })),
    clear: () => {
      armed = [];
    },
    take: (method, path) => {
      const hit = armed.find(
        ({ fault, endsAt, hits }) =>
          hits < fault.count &&
          performance.now() < endsAt &&
          (fault.method === null || fault.method === method) &&
          (fault.path === null || matches(fault.path, path)) &&
          (fault.chance >= 1 || random() < fault.chance),
      );
      if (hit === undefined) return null;
      hit.hits += 1;
      return hit.fault;
    },
  };
}

export const COUNT_LIMIT = 1_000_000;
export const DELAY_LIMIT_MS = 120_000;

export function readFault(fields: Fields): Fault {
  const fault = oneOf(fields, 'fault', FAULTS);
  return {
    fault,
    effect: fields['effect'] === undefined ? 'none' : oneOf(fields, 'effect', EFFECTS),
    method: optionalText(fields, 'method'),
    path: optionalText(fields, 'path'),
    count: wholeNumber(fields, 'count', { from: 1, to: COUNT_LIMIT }),
    chance: share(fields['chance']),
    delayMs:
      fault === 'delay' ? wholeNumber(fields, 'delayMs', { from: 1, to: DELAY_LIMIT_MS }) : 0,
    forMs:
      fields['forMs'] === undefined
        ? null
        : wholeNumber(fields, 'forMs', { from: 1, to: DELAY_LIMIT_MS }),
    status: fault === 'answer' ? wholeNumber(fields, 'status', { from: 200, to: 599 }) : 0,
    headers: readHeaders(object(fields, 'headers')),
    body: readBody(fields['body']),
  };
}

/** Returns the share of requests to which the fault applies. Without `chance`, all requests. */
export function share(value: unknown): number {
  if (value === undefined) return 1;
  if (typeof value === 'number' && value > 0 && value <= 1) return value;
  throw wrong('chance', 'above 0 and at most 1');
}

function readHeaders(fields: Fields): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (typeof value !== 'string') throw wrong(`headers.${name}`, 'a text');
      return [name.toLowerCase(), value];
    }),
  );
}

function readBody(value: unknown): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
