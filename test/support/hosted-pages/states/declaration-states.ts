import { ADA, openDeclaration } from '../declarations.ts';
import type { PageStates } from './page-servers.ts';

const CONTRACT = { ...ADA, reference: 'sub_0002sSOLuQx1oB9bUeVtYw3c' };

/** Each state of the pages on which a payer cancels or withdraws without login. */
export const DECLARATION_STATES: PageStates = {
  'cancellation: form': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).page,
  'cancellation: mistyped': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).submit({
      name: 'Ada Example',
      email: 'ada@',
      kind: 'cause',
      endOn: '31.3.',
    }),
  'cancellation: French summary': async ({ test }) =>
    (await openDeclaration(test, 'cancellation', { locale: 'fr' })).submit(CONTRACT),
  'cancellation: received': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).declare({
      ...CONTRACT,
      kind: 'cause',
      reason: 'Three letters never came.',
      endOn: '2027-03-31',
      checked: 'yes',
    }),
  'withdrawal: form': async ({ test }, locale) =>
    (await openDeclaration(test, 'withdrawal', { locale })).page,
  'withdrawal: received': async ({ test }, locale) =>
    (await openDeclaration(test, 'withdrawal', { locale })).declare(CONTRACT),
};
