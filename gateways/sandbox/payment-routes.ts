import { KEY_LENGTH_MAX } from '../port.ts';
import type { CardBook } from './card-book.ts';
import type { ChargeBook, ChargeOrder } from './charge-book.ts';
import type { Faults } from './faults.ts';
import type { RefundBook, RefundStatus } from './refund-book.ts';
import { currency, object, optionalText, text, wholeNumber } from '../http-server/fields.ts';
import type { Fields } from '../http-server/fields.ts';
import { json, readJson, RequestRefused } from '../http-server/http.ts';
import type { Call, Handler, Route } from '../http-server/http.ts';

/** Header of an answer that repeats the result of an earlier request with the same key. */
const REPLAYED_HEADER = 'idempotent-replayed';

export interface PaymentRouteOptions {
  readonly cards: CardBook;
  readonly charges: ChargeBook;
  readonly refunds: RefundBook;
  readonly faults: Faults;
  readonly now: () => number;
}

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

function chargeHandlers({ charges, faults, now }: PaymentRouteOptions) {
  // The number of unanswered charge requests, by key.
  const inFlight = new Map<string, number>();

  const charge: Handler = async (call) => {
    const key = idempotencyKey(call);
    inFlight.set(key, (inFlight.get(key) ?? 0) + 1);
    try {
      const order = chargeOrder(key, await readJson(call.request));
      const { subscriptionId, paymentMethodId } = order.reference;
      return await faults.serve('charge', order.reference, {
        work: async () => {
          const { charge: booked, isReplay } = await charges.charge(order, now());
          return json(200, { charge: booked }, replayed(isReplay));
        },
        decline: () =>
          charges.forceDeclines({
            subscriptionId,
            paymentMethodId: subscriptionId === null ? paymentMethodId : null,
            code: 'insufficient_funds',
            count: 1,
          }),
      });
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
    const target = found?.target ?? { subscriptionId: null, paymentMethodId: null };
    return faults.serve('lookup', target, {
      work: async () => {
        if (found !== null) return json(200, { state: 'booked', charge: found.charge });
        return json(200, { state: isInFlight ? 'in_progress' : 'absent' });
      },
    });
  };

  return { charge, lookup };
}

function methodHandler({ cards, faults, now }: PaymentRouteOptions): Handler {
  return async ({ request }) => {
    const fields = await readJson(request);
    const reference = object(fields, 'reference');
    const order = {
      key: text(fields, 'key'),
      token: text(fields, 'token'),
      session: text(fields, 'session'),
      shouldVerify: fields['verify'] === true,
      paymentMethodId: optionalText(reference, 'paymentMethodId'),
      customerId: optionalText(reference, 'customerId'),
    };
    const target = { subscriptionId: null, paymentMethodId: order.paymentMethodId };
    return faults.serve('methods', target, {
      work: async () => {
        const result = await cards.save(order, now());
        if ('refused' in result) return json(200, { refused: result });
        const { card: method, enteredAt, isReplay } = result;
        return json(200, { method, enteredAt }, replayed(isReplay));
      },
    });
  };
}

function refundHandlers({ refunds, faults, now }: PaymentRouteOptions) {
  const target = { subscriptionId: null, paymentMethodId: null };

  const refund: Handler = async ({ request }) => {
    const fields = await readJson(request);
    const order = {
      key: text(fields, 'key'),
      gatewayChargeId: text(fields, 'gatewayChargeId'),
      amountMinor: amountMinor(fields),
      currency: currency(fields, 'currency'),
    };
    let status: RefundStatus = 'succeeded';
    return faults.serve('refund', target, {
      work: async () => {
        const result = await refunds.refund(order, status, now());
        if ('refused' in result) return json(200, { refused: result.refused });
        return json(200, { refund: result.refund }, replayed(result.isReplay));
      },
      leavePending: () => void (status = 'pending'),
    });
  };

  const lookupRefund: Handler = async ({ url }) => {
    const key = text(Object.fromEntries(url.searchParams), 'key');
    return faults.serve('refund_lookup', target, {
      work: async () => {
        const found = await refunds.find(key);
        return json(200, found === null ? { state: 'absent' } : { refund: found });
      },
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

function chargeOrder(key: string, fields: Fields): ChargeOrder {
  const reference = object(fields, 'reference');
  return {
    key,
    gatewayMethodId: text(fields, 'gatewayMethodId'),
    amountMinor: amountMinor(fields),
    currency: currency(fields, 'currency'),
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

function replayed(isReplay: boolean): Record<string, string> {
  return isReplay ? { [REPLAYED_HEADER]: 'true' } : {};
}
