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

export type Fault = Readonly<ReturnType<typeof readFault>>;

/** True if the fault applies to a request. `chance` decides by a random number. */
export function applies(fault: Fault, method: string, path: string): boolean {
  return (
    performance.now() < fault.endsAt &&
    (fault.method === null || fault.method === method) &&
    (fault.path === null || matches(fault.path, path)) &&
    isHit(fault)
  );
}

export function isHit({ chance }: { readonly chance: number }): boolean {
  return Math.random() < chance;
}

export const COUNT_LIMIT = 1_000_000;
export const DELAY_LIMIT_MS = 120_000;

export function readFault(fields: Fields) {
  const fault = oneOf(fields, 'fault', FAULTS);
  return {
    fault,
    effect: fields['effect'] === undefined ? 'none' : oneOf(fields, 'effect', EFFECTS),
    method: optionalText(fields, 'method'),
    /** A path in which `*` stands for one segment, such as `/v1/charges/*`. Null matches every path. */
    path: optionalText(fields, 'path'),
    count: wholeNumber(fields, 'count', { from: 1, to: COUNT_LIMIT }),
    chance: share(fields['chance']),
    delayMs:
      fault === 'delay' ? wholeNumber(fields, 'delayMs', { from: 1, to: DELAY_LIMIT_MS }) : 0,
    /** The time of `performance` at which the fault ends, at the latest. */
    endsAt:
      fields['forMs'] === undefined
        ? Infinity
        : performance.now() + wholeNumber(fields, 'forMs', { from: 1, to: DELAY_LIMIT_MS }),
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
