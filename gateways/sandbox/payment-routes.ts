import { KEY_LENGTH_MAX } from '../port.ts';
import type { CardBook } from './card-book.ts';
import type { ChargeBook, ChargeOrder } from './charge-book.ts';
import type { RefundBook } from './refund-book.ts';
import { currency, object, optionalText, text, wholeNumber } from '../http-server/fields.ts';
import type { Fields } from '../http-server/fields.ts';
import { json, readJson, RequestRefused } from '../http-server/http.ts';
import type { Call, GatewayAnswer, Handler, Reply, Route } from '../http-server/http.ts';

/** Header of an answer that repeats the result of an earlier request with the same key. */
const REPLAYED_HEADER = 'idempotent-replayed';

export interface PaymentRouteOptions {
  readonly cards: CardBook;
  readonly charges: ChargeBook;
  readonly refunds: RefundBook;
  readonly serve: Serve;
  readonly now: () => number;
}

/** Serves one request by calling `work`. The ids are null if the request does not contain them. */
export type Serve = (
  request: {
    readonly operation: 'charge' | 'lookup' | 'methods' | 'refund' | 'refund_lookup';
    readonly key: string;
    readonly subscriptionId: string | null;
    readonly paymentMethodId: string | null;
  },
  work: () => Promise<GatewayAnswer>,
) => Promise<Reply>;

const NO_IDS = { subscriptionId: null, paymentMethodId: null };

/** Routes for our own processes, which send the gateway key as a bearer token. */
export function paymentRoutes(options: PaymentRouteOptions): Route[] {
  const { charge, lookup } = chargeHandlers(options);
  const { refund, lookupRefund } = refundHandlers(options);
  return [
    { method: 'POST', path: '/v1/charges', access: 'key', handle: charge },
    { method: 'POST', path: '/v1/methods', access: 'key', handle: methodHandler(options) },
    {
      method: 'GET',
      path: '/v1/methods',
      access: 'key',
      handle: async ({ url }) => {
        const id = text(Object.fromEntries(url.searchParams), 'id');
        return json(200, { method: await options.cards.find(id) });
      },
    },
    { method: 'GET', path: '/v1/charges', access: 'key', handle: lookup },
    { method: 'POST', path: '/v1/refunds', access: 'key', handle: refund },
    { method: 'GET', path: '/v1/refunds', access: 'key', handle: lookupRefund },
  ];
}

function chargeHandlers({ charges, serve, now }: PaymentRouteOptions) {
  // The number of unanswered charge requests, by key.
  const inFlight = new Map<string, number>();

  const charge: Handler = async (call) => {
    const key = idempotencyKey(call);
    inFlight.set(key, (inFlight.get(key) ?? 0) + 1);
    try {
      const order = chargeOrder(key, await readJson(call.request), now());
      const { subscriptionId, paymentMethodId } = order.reference;
      return await serve(
        { operation: 'charge', key, subscriptionId, paymentMethodId },
        async () => {
          const { charge: booked, isReplay } = await charges.charge(order, now());
          return json(200, { charge: booked }, replayed(isReplay));
        },
      );
    } finally {
      const left = (inFlight.get(key) ?? 1) - 1;
      if (left === 0) inFlight.delete(key);
      else inFlight.set(key, left);
    }
  };

  const lookup: Handler = async ({ url }) => {
    const key = text(Object.fromEntries(url.searchParams), 'key');
    // Read `inFlight` before the database: a charge that commits between the two reads is found in the
    // database.
    const isInFlight = inFlight.has(key);
    const found = await charges.find(key);
    return serve({ operation: 'lookup', key, ...NO_IDS }, async () => {
      if (found !== null) return json(200, { state: 'booked', charge: found });
      return json(200, { state: isInFlight ? 'in_progress' : 'absent' });
    });
  };

  return { charge, lookup };
}

function methodHandler({ cards, serve, now }: PaymentRouteOptions): Handler {
  return async ({ request }) => {
    const fields = await readJson(request);
    const reference = object(fields, 'reference');
    const order = {
      key: text(fields, 'key'),
      token: text(fields, 'token'),
      session: text(fields, 'session'),
      shouldVerify: fields['verify'] === true,
      verifiedAt: businessTime(fields, 'verifiedAt', now()),
      paymentMethodId: optionalText(reference, 'paymentMethodId'),
      customerId: optionalText(reference, 'customerId'),
    };
    const { key, paymentMethodId } = order;
    return serve({ operation: 'methods', key, subscriptionId: null, paymentMethodId }, async () => {
      const result = await cards.save(order, now());
      if ('refused' in result) return json(200, { refused: result });
      const { card: method, enteredAt, isReplay } = result;
      return json(200, { method, enteredAt }, replayed(isReplay));
    });
  };
}

function refundHandlers({ refunds, serve, now }: PaymentRouteOptions) {
  const refund: Handler = async ({ request }) => {
    const fields = await readJson(request);
    const key = text(fields, 'key');
    const order = {
      key,
      gatewayChargeId: text(fields, 'gatewayChargeId'),
      amountMinor: amountMinor(fields),
      currency: currency(fields, 'currency'),
    };
    return serve({ operation: 'refund', key, ...NO_IDS }, async () => {
      const result = await refunds.refund(order, now());
      if ('refused' in result) return json(200, { refused: result.refused });
      return json(200, { refund: result.refund }, replayed(result.isReplay));
    });
  };

  const lookupRefund: Handler = async ({ url }) => {
    const key = text(Object.fromEntries(url.searchParams), 'key');
    return serve({ operation: 'refund_lookup', key, ...NO_IDS }, async () => {
      const found = await refunds.find(key);
      return json(200, found === null ? { state: 'absent' } : { refund: found });
    });
  };

  return { refund, lookupRefund };
}

function idempotencyKey({ request }: Call): string {
  const key = request.headers['idempotency-key'];
  if (typeof key === 'string' && key.length <= KEY_LENGTH_MAX && /^[a-zA-Z0-9\-_:.]+$/.test(key))
    return key;
  throw new RequestRefused(400, 'key_invalid', 'A charge needs an Idempotency-Key header.');
}

function chargeOrder(key: string, fields: Fields, now: number): ChargeOrder {
  const reference = object(fields, 'reference');
  return {
    key,
    gatewayMethodId: text(fields, 'gatewayMethodId'),
    amountMinor: amountMinor(fields),
    currency: currency(fields, 'currency'),
    openedAt: businessTime(fields, 'openedAt', now),
    reference: {
      merchantId: text(reference, 'merchantId'),
      intentId: text(reference, 'intentId'),
      subscriptionId: optionalText(reference, 'subscriptionId'),
      paymentMethodId: text(reference, 'paymentMethodId'),
    },
  };
}

function amountMinor(fields: Fields): number {
  return wholeNumber(fields, 'amountMinor', { from: 1, to: Number.MAX_SAFE_INTEGER });
}

function businessTime(fields: Fields, name: string, now: number): number {
  if (fields[name] === undefined) return now;
  return wholeNumber(fields, name, { from: 0, to: Number.MAX_SAFE_INTEGER });
}

function replayed(isReplay: boolean): Record<string, string> {
  return isReplay ? { [REPLAYED_HEADER]: 'true' } : {};
}
