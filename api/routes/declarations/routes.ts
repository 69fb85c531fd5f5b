import { z } from 'zod';
import { listDeclarations } from '../../../db/repositories/lists.ts';
import { shownDeclaration } from '../../../db/repositories/customers/declarations.ts';
import { DECLARATION_KINDS } from '../../../domain/declaration.ts';
import { DeclarationAnswer, pageAnswer } from '../../answer-fields.ts';
import { optional } from '../../fields.ts';
import { answerPage, listQuery } from '../../lists.ts';
import { route } from '../../http/route.ts';

export const getDeclarations = route({
  operationId: 'listDeclarations',
  method: 'get',
  path: '/declarations',
  tag: 'Declarations',
  summary: 'List what payers declared',
  description:
    'Cancellations and withdrawals that payers declared on your pages without login, newest first, in pages. None is ever deleted.',
  isExtension: true,
  query: {
    ...listQuery('dcl'),
    kind: optional(z.enum(DECLARATION_KINDS)).describe('Only declarations of this kind.'),
  },
  answer: pageAnswer('A page of declarations.', DeclarationAnswer, {
    declarationId: 'dcl_0002sSOLuT4hJ7kLmN2pQrSt',
    kind: 'withdrawal',
    name: 'Ada Example',
    email: 'ada@example.com',
    reference: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
    reason: null,
    endDate: null,
    language: 'en',
    declaredAt: 1_795_262_400_000,
    outcome: 'told',
    subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
    intentId: null,
    isInWithdrawalPeriod: true,
    refunds: [{ xIntentId: 'in_0002sSOLuRz8kF5dGhJ3lMnB', amount: 1_999 }],
  }),
  handle: async (call, { db }) =>
    answerPage(call, (query) => listDeclarations(db, query, call.query), shownDeclaration),
});
