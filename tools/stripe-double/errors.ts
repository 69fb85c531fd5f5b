/** A JSON object as Stripe sends it, with Stripe's names. */
export type StripeObject = Record<string, unknown>;

/** The fields of `error` in an answer. `type` has a value that the API's document lists. */
export interface StripeErrorBody extends StripeObject {
  readonly type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error';
  readonly message: string;
}

/** The request has no effect. A declined card is no refusal, because it changes the PaymentIntent. */
export class StripeRefusal extends Error {
  override readonly name = 'StripeRefusal';
  readonly status: number;
  readonly body: StripeErrorBody;

  constructor(status: number, body: StripeErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

/** The fields `code` and `doc_url` of an error. */
export function coded(code: string) {
  return { code, doc_url: `https://docs.stripe.com/error-codes/${code.replaceAll('_', '-')}` };
}

/** Status 400. `more`: further fields, such as `code`, `param` and `payment_intent`. */
export function invalid(message: string, more: StripeObject = {}): StripeRefusal {
  return new StripeRefusal(400, { type: 'invalid_request_error', message, ...more });
}

/** 404 for an id in the path, 400 for an id in a parameter. */
export function noSuch(what: string, id: string, param?: string): StripeRefusal {
  return new StripeRefusal(param === undefined ? 404 : 400, {
    type: 'invalid_request_error',
    ...coded('resource_missing'),
    message: `No such ${what}: '${id}'`,
    param: param ?? 'id',
  });
}

/** Stripe would accept the request. Stripe never gives this answer, so a test that gets it must fail. */
export function notInDouble(what: string): StripeRefusal {
  return new StripeRefusal(501, {
    type: 'api_error',
    message: `The Stripe double does not have ${what}.`,
  });
}
