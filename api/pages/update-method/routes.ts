import {
  ensureUpdateSession,
  findCyclePayment,
  findUpdatableSubscription,
  updateTriesOf,
} from '../../../db/repositories/subscriptions/method-updates.ts';
import type { UpdatableSubscription } from '../../../db/repositories/subscriptions/method-updates.ts';
import { findPaid, findPaidSince } from '../../../db/repositories/payments/receipts.ts';
import { needsAuthentication } from '../../../domain/subscription/authentication.ts';
import { UnknownGateway } from '../../../gateways/registry.ts';
import type { ApiDeps } from '../../deps.ts';
import { cardPageRoutes } from '../shared/card-pages.ts';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import {
  bankPath,
  nextUpdateToken,
  readUpdateToken,
  sessionIdOf,
  updateMethodPath,
} from '../../../runtime/payer-links.ts';
import {
  askedOf,
  canPayAgain,
  confirmationOf,
  confirmPath,
  donePage,
  isChargedNow,
  outcomePath,
  paidPage,
  payAgainPath,
  updateStageOf,
} from './page.tsx';
import type { MethodUpdate } from './page.tsx';
import { DomainError } from '../../../domain/errors.ts';
import type { Command } from '../../../domain/subscription/commands.ts';
import type { OwedCycle } from '../../../domain/subscription/state.ts';
import type { Language } from '../../../domain/language/language.ts';
import { pathParam } from '../../http/request.ts';
import { executeCommand } from '../../routes/subscriptions/command-routes.ts';
import { seeOther } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';

export function updateMethodPageRoutes(routes: PageRoutes): void {
  const { router, deps } = routes;
  const { db, now, workflows } = deps;

  const { openForm } = cardPageRoutes<MethodUpdate>(routes, {
    pathOf: updateMethodPath,
    texts: { expired: 'askMerchant' },
    find: (token) => findUpdate(deps, token),
    stageOf: (update) => updateStageOf(update, now()),
    asked: (request, update) => askedOf(request, update, now()),
    ownPage: donePage,
    dueNow: (update) => {
      const { owed, terms } = update.state;
      const isDue = owed !== null && isChargedNow(update, now());
      return isDue ? { amountMinor: owed.amountMinor, currency: terms.currency } : null;
    },
    leaveUrl: () => null,
    outcomeOf: outcomePath,
    next: (update) => nextPath(deps, update),
    isDecided: (update) =>
      !['open', 'locked', 'kept', 'processing'].includes(updateStageOf(update, now())),
    limitsOf: ({ tries, expiresAt }) => ({ tries: tries.length, expiresAt }),
    purpose: 'update_method',
    subjectId: ({ subscriptionId }) => subscriptionId,
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

  /** Begins the confirmation of the owed payment with the bank. */
  router.post(confirmPath(updateMethodPath(':token')), async (ctx) => {
    const opened = await openForm(ctx);
    if (opened === null) return;
    const { subject: update, home, outcome } = opened;
    const isOpen = updateStageOf(update, now()) === 'open';
    const confirmation = isOpen ? confirmationOf(update) : null;
    const { owed } = update.state;
    if (confirmation === null || owed === null) return seeOther(ctx, outcome);
    if (confirmation === 'offered') await begin(deps, update, owed);
    seeOther(ctx, bankPath(home, owed.intentId));
  });

  /** Charges the present card again. Its receipt is at the address of the payment's outcome. */
  router.post(payAgainPath(updateMethodPath(':token'), ':intentId'), async (ctx) => {
    const opened = await openForm(ctx);
    if (opened === null) return;
    const { subject: update, home } = opened;
    const intentId = pathParam(ctx, 'intentId');
    const { owed } = update.state;
    const isOpen = updateStageOf(update, now()) === 'open' && canPayAgain(update, now());
    if (isOpen && owed?.intentId === intentId) {
      const commandId = `again:${intentId}:${owed.attempts + 1}`;
      await executeForPayer(deps, update, { kind: 'manualRetry', commandId, actor: 'payer' });
    }
    seeOther(ctx, bankPath(home, encodeURIComponent(intentId)));
  });
}

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
  const saved = tries.findLast(({ command }) => command !== null);
  const changedAt = saved?.command?.acceptedAt ?? null;
  const paid = changedAt === null ? null : await findPaidSince(deps.db, subscription, changedAt);
  const newCard = saved?.command?.card ?? null;
  const { expiresAt } = link;
  const found = { tries, owedPayment, canConfirm, changedAt, paid, newCard };
  return { ...subscription, token, sessionId, expiresAt, ...found };
}

/** Returns the path of the link's first session that has replaced no card; null if it is this one. */
async function nextPath(deps: ApiDeps, opened: MethodUpdate): Promise<string | null> {
  let update: MethodUpdate | null = opened;
  while (update !== null && ['saved', 'paid'].includes(updateStageOf(update, deps.now()))) {
    update = await findUpdate(deps, nextUpdateToken(deps, update));
  }
  return update === null || update === opened ? null : updateMethodPath(update.token);
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

const PAID = ['SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED'];

/** Opens the attempt that the payer confirms. Two clicks open one. */
async function begin(deps: ApiDeps, update: MethodUpdate, owed: OwedCycle): Promise<void> {
  const commandId = `authenticate:${owed.intentId}:${owed.attempts + 1}`;
  const { sessionId: checkoutSessionId } = update;
  // The bank sends the payer back to the page of the session, so the session must have its row.
  await ensureUpdateSession(deps.db, update, deps.now());
  await executeForPayer(deps, update, {
    kind: 'authenticatePayment',
    commandId,
    checkoutSessionId,
  });
}

/**
 * A refused command changes nothing, and the page shows the state.
 * @throws DomainError `service_unavailable` if it is unknown whether the command was executed.
 */
async function executeForPayer(
  deps: ApiDeps,
  update: MethodUpdate,
  command: Command,
): Promise<void> {
  try {
    await executeCommand(deps.workflows, update, command);
  } catch (error) {
    if (!(error instanceof DomainError) || error.code === 'service_unavailable') throw error;
  }
}

/** Returns the page of a payment that the payer confirmed; null if the update page shows it, or if it is not paid. */
async function confirmedPage(
  deps: ApiDeps,
  language: Language,
  update: MethodUpdate,
  intentId: string,
): Promise<Page | null> {
  if (updateStageOf(update, deps.now()) === 'paid') return null;
  const payment = await findCyclePayment(deps.db, { ...update, intentId });
  if (payment === null || !PAID.includes(payment.status)) return null;
  const amount = language.money(payment.amountMinor, update.state.terms.currency);
  const paid = await findPaid(deps.db, { ...update, intentId });
  return paidPage(language, update, language.say('dueAmountPaid', { amount }), paid);
}
