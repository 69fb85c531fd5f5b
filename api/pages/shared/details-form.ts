import type { CustomerDetails } from '../../../domain/customer.ts';
import { isStorable } from '../../fields.ts';
import { EMAIL_PATTERN } from '../../routes/customers/schema.ts';

export type DetailName = 'name' | 'email' | 'contactNumber';

/** What the payer typed for a field, and what is wrong with it. */
export type TypedDetails = ReadonlyMap<string, { value: string; problem: string | null }>;

/** What is known of a payer already, and whether the merchant wants a phone number. */
export interface Payer {
  /** As the merchant gave them for this payment. */
  readonly customerDetails: CustomerDetails;
  /** As the customer is known by; null for one who is not known yet. */
  readonly savedDetails: CustomerDetails | null;
  readonly phoneNumberRequired: boolean;
}

/** Rule: D-11. */
const LENGTH_MAX = 255;

const PROBLEMS: Readonly<Record<DetailName, { pattern: RegExp; message: string }>> = {
  name: { pattern: /\S/, message: 'Enter your name.' },
  email: { pattern: EMAIL_PATTERN, message: 'Enter an e-mail address, such as ann@example.com.' },
  contactNumber: {
    pattern: /^\+?[\d ().-]{5,30}$/,
    message: 'Enter a phone number with its international prefix, such as +44 20 7946 0000.',
  },
};

/** What the payer typed for the fields that were asked for, each with what is wrong with it. */
export function readDetails(form: URLSearchParams, names: readonly DetailName[]): TypedDetails {
  return new Map(
    names.map((name) => {
      const value = (form.get(name) ?? '').trim();
      const { pattern, message } = PROBLEMS[name];
      const isRight = pattern.test(value) && value.length <= LENGTH_MAX && isStorable(value);
      return [name, { value, problem: isRight ? null : message }];
    }),
  );
}

/** What has to be asked of the payer before a card. Rule: D-11. */
export function missingDetails(payer: Payer): DetailName[] {
  const known = knownDetails(payer);
  const wanted: DetailName[] = ['name', 'email'];
  if (payer.phoneNumberRequired) wanted.push('contactNumber');
  return wanted.filter((name) => !known[name]);
}

/** The payment's own details first, then the customer's. */
export function knownDetails({ customerDetails, savedDetails }: Payer): CustomerDetails {
  return {
    name: customerDetails.name || savedDetails?.name,
    email: customerDetails.email || savedDetails?.email,
    contactNumber: customerDetails.contactNumber || savedDetails?.contactNumber,
  };
}
