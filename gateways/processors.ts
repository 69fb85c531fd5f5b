import type { Processor } from './processor.ts';
import { UnknownGateway } from './registry.ts';
import { checkKey, shownKey } from './stripe/account-check.ts';
import { openStripeAccount } from './stripe/adapter.ts';
import { readBook } from './stripe/book.ts';

export const PROCESSORS: readonly [Processor, ...Processor[]] = [
  {
    name: 'stripe',
    company: 'Stripe',
    shownKey,
    webhookSecretStart: 'whsec_',
    checkKey,
    openAccount: openStripeAccount,
    readBook,
  },
];

export const PROCESSOR_NAMES = PROCESSORS.map(({ name }) => name);

/** The companies, for texts. */
export const COMPANIES = PROCESSORS.map(({ company }) => company).join(' or ');

/** The processor of an account's name, such as `stripe:acct_…`. @throws UnknownGateway */
export function processorOf(name: string, processors: readonly Processor[] = PROCESSORS) {
  const found = processors.find((one) => name.startsWith(`${one.name}:`));
  if (found === undefined) throw new UnknownGateway(name);
  return found;
}
