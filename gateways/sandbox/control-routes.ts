import { DECLINES } from '../../domain/declines.ts';
import type { DeclineCode } from '../../domain/declines.ts';
import { RETRY_ADVICE } from '../port.ts';
import type { ChargeBook } from './charge-book.ts';
import { EFFECTS, FAULTS, OPERATIONS } from './faults.ts';
import type { Fault, Faults } from './faults.ts';
import { object, oneOf, optionalText, text, wholeNumber, wrong } from '../http-server/fields.ts';
import type { Fields } from '../http-server/fields.ts';
import { json, readJson, RequestRefused } from '../http-server/http.ts';
import type { Route } from '../http-server/http.ts';
import { REFUND_STATUSES } from './refund-book.ts';
import type { RefundBook } from './refund-book.ts';

const DECLINE_CODES = Object.keys(DECLINES) as DeclineCode[];

/** Maximum number of charges that one request may decline. Each forced decline is a row. */
const DECLINES_LIMIT = 10_000;

/** Maximum number of requests that one fault may apply to. */
const FAULT_HITS_LIMIT = 1_000_000;

/** Longest delay of an answer, in ms. */
const DELAY_LIMIT_MS = 120_000;

/** Maximum number of charges in one page of the list. */
const PAGE_LIMIT = 1_000;

export interface ControlRouteOptions {
  readonly charges: ChargeBook;
  readonly refunds: RefundBook;
  readonly faults: Faults;
}

/**
 * Routes that set faults and forced declines, decide refunds, and list the charges. All need the gateway
 * key, and all but the route of the forced declines accept requests only from this machine.
 */
export function controlRoutes(options: ControlRouteOptions): Route[] {
  return [...faultRoutes(options), ...bookRoutes(options)];
}

function faultRoutes({ faults }: ControlRouteOptions): Route[] {
  const access = 'key_on_loopback';
  return [
    {
      method: 'POST',
      path: '/control/faults',
      access,
      handle: async ({ request }) => {
        faults.add(readFault(await readJson(request)));
        return json(200, {});
      },
    },
    {
      method: 'GET',
      path: '/control/faults',
      access,
      handle: async () => json(200, { faults: faults.list() }),
    },
    {
      method: 'DELETE',
      path: '/control/faults',
      access,
      handle: async () => {
        faults.clear();
        return json(200, {});
      },
    },
  ];
}

function bookRoutes({ charges, refunds }: ControlRouteOptions): Route[] {
  const access = 'key_on_loopback';
  return [
    {
      method: 'POST',
      path: '/control/declines',
      // The API calls this route for test merchants, and may run on another machine.
      access: 'key',
      handle: async ({ request }) => {
        const fields = await readJson(request);
        const target = readTarget(fields);
        if (target.subscriptionId === null && target.paymentMethodId === null) {
          throw wrong('subscriptionId or paymentMethodId', 'given');
        }
        await charges.forceDeclines({
          ...target,
          code: oneOf(fields, 'code', DECLINE_CODES),
          gatewayCode: optionalText(fields, 'gatewayCode'),
          retry: fields['retry'] === undefined ? null : oneOf(fields, 'retry', RETRY_ADVICE),
          count: wholeNumber(fields, 'count', { from: 1, to: DECLINES_LIMIT }),
        });
        return json(200, {});
      },
    },
    {
      method: 'POST',
      path: '/control/refunds',
      access,
      handle: async ({ request }) => {
        const fields = await readJson(request);
        const status = oneOf(fields, 'status', REFUND_STATUSES);
        const key = text(fields, 'key');
        if (!(await refunds.decide(key, status))) {
          throw new RequestRefused(404, 'refund_not_found', 'There is no refund with this key.');
        }
        return json(200, {});
      },
    },
    {
      method: 'GET',
      path: '/control/charges',
      access,
      handle: async ({ url }) => {
        const query = Object.fromEntries(url.searchParams);
        const listed = await charges.list({
          subscriptionId: optionalText(query, 'subscriptionId'),
          intentId: optionalText(query, 'intentId'),
          after: sequence(query['after']),
          limit: PAGE_LIMIT,
        });
        const last = listed.length === PAGE_LIMIT ? listed.at(-1) : undefined;
        return json(200, { charges: listed, next: last?.sequence ?? null });
      },
    },
  ];
}

function readFault(fields: Fields): Fault {
  const fault = oneOf(fields, 'fault', FAULTS);
  const isDelay = fault === 'delay';
  return {
    operation: oneOf(fields, 'operation', OPERATIONS),
    fault,
    effect: fields['effect'] === undefined ? 'done' : oneOf(fields, 'effect', EFFECTS),
    delayMs: isDelay ? wholeNumber(fields, 'delayMs', { from: 1, to: DELAY_LIMIT_MS }) : 0,
    count: wholeNumber(fields, 'count', { from: 1, to: FAULT_HITS_LIMIT }),
    chance: share(fields['chance']),
    ...readTarget(object(fields, 'match')),
  };
}

function readTarget(fields: Fields) {
  return {
    subscriptionId: optionalText(fields, 'subscriptionId'),
    paymentMethodId: optionalText(fields, 'paymentMethodId'),
  };
}

/** Returns the share of requests to which a fault applies. Without `chance`, all requests. */
function share(value: unknown): number {
  if (value === undefined) return 1;
  if (typeof value === 'number' && value > 0 && value <= 1) return value;
  throw wrong('chance', 'above 0 and at most 1');
}

/** Returns the last sequence of the previous page; 0 for the first page. */
function sequence(value: string | undefined): number {
  if (value === undefined) return 0;
  return wholeNumber({ after: Number(value) }, 'after', { from: 0, to: Number.MAX_SAFE_INTEGER });
}
