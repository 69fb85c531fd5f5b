import { isStorable } from '../../fields.ts';
import { EMAIL_PATTERN } from '../../routes/customers/schema.ts';

export type DetailName = 'name' | 'email' | 'contactNumber';

/** What the payer typed for a field, and what is wrong with it. */
export type TypedDetails = ReadonlyMap<string, { value: string; problem: string | null }>;

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
