import { z } from 'zod';
import { findCustomer } from '../../../db/repositories/customers/customers.ts';
import { insertPortalSession } from '../../../db/repositories/customers/portal-sessions.ts';
import { invariant } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { PORTAL_LINK_MS } from '../../../domain/subscription/portal.ts';
import { portalLink, portalToken } from '../../../runtime/payer-links.ts';
import { epochMs, url } from '../../answer-fields.ts';
import { httpUrl, idText, optional } from '../../fields.ts';
import { found, ok } from '../../http/request.ts';
import { route } from '../../http/route.ts';

export const createPortalLink = route({
  operationId: 'createPortalLink',
  method: 'post',
  path: '/customer/portal',
  tag: 'Customers',
  summary: 'Give a customer a link to a page of their own',
  description:
    'The payer sees their subscriptions, the next charges and the receipts, and does what your setting `portal` allows: ' +
    'change the card, cancel at the end of the period, pause and resume. The link works for an hour, in the first browser ' +
    'that opens it: make one for each visit, for a payer whom you know.',
  isExtension: true,
  body: {
    fields: {
      customerId: idText().describe('Id of the customer.'),
      returnUrl: optional(httpUrl()).describe('Where the link back to your site leads.'),
    },
    examples: {
      'With a way back': {
        customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
        returnUrl: 'https://merchant.example/account',
      },
    },
  },
  answer: {
    description: 'The link.',
    schema: z.object({
      url: url('URL of the page. Only the first browser that opens it can use it.'),
      expiresAt: epochMs('When it stops working.'),
    }),
    examples: {
      'A link': {
        url: 'https://pay.example/portal/4fQ8mT2vXcB6nH1kL9sD3w',
        expiresAt: 1_795_266_000_000,
      },
    },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, body: { customerId, returnUrl } }, deps) => {
    const { db, now, random } = deps;
    found(await findCustomer(db, merchant.id, customerId), 'customer');
    const createdAt = now();
    const expiresAt = createdAt + PORTAL_LINK_MS;
    const portal = { merchantId: merchant.id, id: newId('prt', createdAt, random) };
    const isNew = await insertPortalSession(db, portalToken(deps, portal), {
      ...portal,
      customerId,
      returnUrl: returnUrl ?? null,
      createdAt,
      expiresAt,
    });
    invariant(isNew, 'a random id is new');
    return ok({ url: portalLink(deps, portal), expiresAt });
  },
});
