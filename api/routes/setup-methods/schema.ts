import { z } from 'zod';
import { httpUrl, idText, metadata, optional } from '../../fields.ts';
import { currency, paymentMethods, storeFrontId } from '../../payment-fields.ts';
import { customerDetails } from '../customers/schema.ts';

/** Rules: IF-4.13, D-11, D-14, D-43. */
export const CreateSetupMethodShape = {
  currency,
  billingDetails: customerDetails,
  callbackUrl: httpUrl(),
  paymentMethods: optional(paymentMethods),
  customerId: optional(idText()),
  storeFrontId: optional(storeFrontId),
  metadata: optional(metadata()),
  phoneNumberRequired: optional(z.boolean()),
};
