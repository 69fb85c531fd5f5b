import type { Router } from '@koa/router';
import {
  ensureUpdateSession,
  findCyclePayment,
  findUpdatableSubscription,
  updateTriesOf,
} from '../../../db/repositories/subscriptions/method-updates.ts';
import type { UpdatableSubscription } from '../../../db/repositories/subscriptions/method-updates.ts';
import { findPaidSince } from '../../../db/repositories/payments/receipts.ts';
import { needsAuthentication } from '../../../domain/subscription/authentication.ts';
import { UnknownGateway } from '../../../gateways/registry.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { processingPage, unknownPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import type { PageLimits } from '../shared/limits.ts';
import { readUpdateToken, sessionIdOf, updateMethodPath } from '../../../runtime/payer-links.ts';
import { confirmationRoutes, confirmedPage } from './confirmation-routes.ts';
import { updatePage } from './page.tsx';
import { updateStageOf } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

export function updateMethodPageRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
): void {
  const { db, now, workflows } = deps;

  confirmationRoutes(router, deps, limits, {
    find: (token) => findUpdate(deps, token),
    unknown: (language) => unknownPage(language, 'unknownUpdate'),
  });
  cardPageRoutes<MethodUpdate>(router, deps, limits, {
    pathOf: updateMethodPath,
    unknown: (language) => unknownPage(language, 'unknownUpdate'),
    find: (token) => findUpdate(deps, token),
    show: (request, update) => updatePage(request, update, now()),
    asks: (update) => updateStageOf(update, now()) === 'open',
    isDecided: (update) => !['open', 'locked', 'processing'].includes(updateStageOf(update, now())),
    limitsOf: ({ tries, expiresAt }) => ({ tries: tries.length, expiresAt }),
    purpose: 'update_method',
    subjectId: ({ subscriptionId }) => subscriptionId,
    processing: processingPage,
    bank: {
      intentOf: ({ state }) => state.owed?.intentId ?? null,
      attemptOf: async (update, intentId) =>
        (await findCyclePayment(db, { ...update, intentId }))?.attempt ?? null,
      lookUp: ({ merchantId, subscriptionId }) => workflows.recheck({ merchantId, subscriptionId }),
      // The update is read again, because the charge may have been decided after the first read.
      outcomeOf: async (language, update, intentId) =>
        confirmedPage(deps, language, (await findUpdate(deps, update.token)) ?? update, intentId),
    },
    beforeTry: (update) => ensureUpdateSession(db, update, now()),
  });
}

/** Returns the subscription of a link, with the cards tried on the page. Null for an invalid link. */
async function findUpdate(deps: ApiDeps, token: string): Promise<MethodUpdate | null> {
  const link = readUpdateToken(deps, token);
  const subscription = link && (await findUpdatableSubscription(deps.db, link));
  if (!subscription) return null;
  const sessionId = sessionIdOf(token);
  const tries = await updateTriesOf(deps.db, { ...subscription, sessionId });
  const { owed } = subscription.state;
  const owedPayment =
    owed && (await findCyclePayment(deps.db, { ...subscription, intentId: owed.intentId }));
  const canConfirm = await canConfirmWithBank(deps, subscription);
  const changedAt = tries.findLast(({ command }) => command !== null)?.command?.acceptedAt ?? null;
  const paid = changedAt === null ? null : await findPaidSince(deps.db, subscription, changedAt);
  const { expiresAt } = link;
  const found = { tries, owedPayment, canConfirm, changedAt, paid };
  return { ...subscription, token, sessionId, expiresAt, ...found };
}

async function canConfirmWithBank(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  { merchantId, state, card }: UpdatableSubscription,
): Promise<boolean> {
  if (card === null || !needsAuthentication(state)) return false;
  try {
    const { capabilities } = await gateways.of(merchantId, card.gateway);
    return capabilities.payerPresent;
  } catch (error) {
    // The payer can still give another card.
    if (error instanceof UnknownGateway) return false;
    throw error;
  }
}
