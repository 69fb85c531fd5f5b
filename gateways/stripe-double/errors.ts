/** A JSON object as Stripe sends it. Names are Stripe's. */
export type StripeObject = Record<string, unknown>;

/** The fields of `error` in an answer. `type` has a value that the API's document lists. */
export interface StripeErrorBody extends StripeObject {
  readonly type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error';
  readonly message: string;
}

/**
 * Answers a request with an error in Stripe's form. The request then has no effect. A declined card is not
 * a refusal: it changes the PaymentIntent, so its endpoint returns the answer.
 */
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

/** A 400 answer. `more` has `code`, `param` and objects such as `payment_intent`. */
export function invalid(message: string, more: StripeObject = {}): StripeRefusal {
  return new StripeRefusal(400, { type: 'invalid_request_error', message, ...more });
}

/** The answer for an id that this account does not have: 404 in a path, 400 in a parameter. */
export function noSuch(what: string, id: string, param?: string): StripeRefusal {
  return new StripeRefusal(param === undefined ? 404 : 400, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    doc_url: docUrl('resource_missing'),
    message: `No such ${what}: '${id}'`,
    param: param ?? 'id',
  });
}

/**
 * The answer for anything that Stripe accepts and the double does not have. It is not an answer of Stripe: a
 * test that needs it must fail.
 */
export function notInDouble(what: string): StripeRefusal {
  return new StripeRefusal(501, {
    type: 'api_error',
    message: `The Stripe double does not have ${what}.`,
  });
}

export function docUrl(code: string): string {
  return `https://docs.stripe.com/error-codes/${code.replaceAll('_', '-')}`;
}
