import { z } from 'zod';
import { httpUrl, idText, metadata, optional, readFields } from '../../fields.ts';
import type { Fields } from '../../fields.ts';
import {
  amount,
  amountProblems,
  currency,
  description,
  paymentMethods,
  receiptId,
  storeFrontId,
} from '../../payment-fields.ts';
import { customerDetails } from '../customers/schema.ts';

/** `receiptId` is an extension. Rules: IF-4.12, D-10. */
export const ChargeTokenisedShape = {
  pmId: idText(),
  customerId: idText(),
  currency,
  amount,
  receiptId: optional(receiptId),
  storeFrontId: optional(storeFrontId),
  metadata: optional(metadata()),
};

export type ChargeTokenisedBody = Fields<typeof ChargeTokenisedShape>;

/** @throws DomainError `bad_request` naming every invalid field. */
export function readChargeTokenised(body: unknown): ChargeTokenisedBody {
  return readFields(ChargeTokenisedShape, body, (fields) =>
    amountProblems({ amount: fields.amount }, fields.currency),
  );
}

/** A hosted one-time payment. Rules: D-§7, D-11, D-14, D-43. */
export const CreateIntentShape = {
  amount,
  currency,
  customerDetails,
  callbackUrl: httpUrl(),
  receiptId: optional(receiptId),
  description: optional(description),
  cancelUrl: optional(httpUrl()),
  paymentMethods: optional(paymentMethods),
  metadata: optional(metadata()),
  phoneNumberRequired: optional(z.boolean()),
  customerId: optional(idText()),
  storeFrontId: optional(storeFrontId),
  tokenise: optional(z.boolean()),
};

export type CreateIntentBody = Fields<typeof CreateIntentShape>;

/** @throws DomainError `bad_request` naming every invalid field. */
export function readCreateIntent(body: unknown): CreateIntentBody {
  return readFields(CreateIntentShape, body, (fields) =>
    amountProblems({ amount: fields.amount }, fields.currency),
  );
}

/** `xIntentId` must equal the id in the path when it is present. Rules: IF-4.11, D-14. */
export const CancelIntentShape = { xIntentId: optional(idText()) };

/** @throws DomainError `bad_request` for a body that names another intent than the path. */
export function checkCancelIntent(body: unknown, xIntentId: string): void {
  if (body === undefined) return;
  readFields(CancelIntentShape, body, (fields) =>
    fields.xIntentId === undefined || fields.xIntentId === xIntentId
      ? []
      : [{ field: 'xIntentId', message: 'must equal the id in the path' }],
  );
}

/** The upper limit is what is left of the intent. It is checked against the intent's row. */
const refundAmount = z
  .custom<number | string>(
    (value) =>
      typeof value === 'string'
        ? /^[1-9]\d{0,15}$/.test(value) && Number.isSafeInteger(Number(value))
        : typeof value === 'number' && Number.isSafeInteger(value) && value >= 1,
    { error: 'must be an integer of at least 1 in the smallest currency unit' },
  )
  .meta({ type: ['integer', 'string'], minimum: 1, pattern: '^[1-9][0-9]{0,15}$' })
  .transform(Number);

/** Without an amount all that is left is refunded. Rule: D-§7. */
export const RefundShape = { xIntentId: idText(), amount: optional(refundAmount) };
