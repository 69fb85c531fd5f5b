import { DECLINES } from '../../domain/declines.ts';
import type { DeclineCode, StatedAdvice } from '../../domain/declines.ts';
import { readAdvice } from './advice.ts';
import type { ChargeBook } from './charge-book.ts';
import { oneOf, optionalText, wholeNumber, wrong } from '../http-server/fields.ts';
import type { Fields } from '../http-server/fields.ts';
import { json, readJson } from '../http-server/http.ts';
import type { Route } from '../http-server/http.ts';

const DECLINE_CODES = Object.keys(DECLINES) as DeclineCode[];

/** Maximum number of charges that one request may decline. Each forced decline is a row. */
const DECLINES_LIMIT = 10_000;

const PAGE_LIMIT = 1_000;

/** Routes that decline future charges and list the charges. Both need the gateway key. */
export function controlRoutes(charges: ChargeBook): Route[] {
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
          networkCode: optionalText(fields, 'networkCode'),
          advice: adviceIn(fields),
          count: wholeNumber(fields, 'count', { from: 1, to: DECLINES_LIMIT }),
        });
        return json(200, {});
      },
    },
    {
      method: 'GET',
      path: '/control/charges',
      // `verify` in a container has another address.
      access: 'key',
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

function adviceIn({ advice: given }: Fields): StatedAdvice | null {
  const advice = readAdvice(given);
  if (advice === null && given !== undefined && given !== null) {
    throw wrong('advice', 'an advice with its kind, and waitMs for not_before');
  }
  return advice;
}

export function readTarget(fields: Fields) {
  return {
    subscriptionId: optionalText(fields, 'subscriptionId'),
    paymentMethodId: optionalText(fields, 'paymentMethodId'),
  };
}

function sequence(value: string | undefined): number {
  if (value === undefined) return 0;
  return wholeNumber({ after: Number(value) }, 'after', { from: 0, to: Number.MAX_SAFE_INTEGER });
}
