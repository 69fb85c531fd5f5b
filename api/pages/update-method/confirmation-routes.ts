import type { Router } from '@koa/router';
import { findPaid } from '../../../db/repositories/payments/receipts.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import {
  ensureUpdateSession,
  findCyclePayment,
} from '../../../db/repositories/subscriptions/method-updates.ts';
import type { CyclePayment } from '../../../db/repositories/subscriptions/method-updates.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { OwedCycle } from '../../../domain/subscription/state.ts';
import type { Language } from '../parts/language.ts';
import { bankPath, updateMethodPath } from '../../../runtime/payer-links.ts';
import { executeCommand } from '../../commands.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { resultPage } from '../shared/card-page.tsx';
import type { PageLimits } from '../shared/limits.ts';
import { createOpener } from '../shared/page-opener.ts';
import { seeOther } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { confirmPath } from './confirmation.tsx';
import { paidReceipt } from './page.tsx';
import { confirmationOf, updateStageOf } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

const PAID = ['SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED'];

/** Registers the form with which a payer begins to confirm the owed payment with the bank. */
export function confirmationRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: { find(token: string): Promise<MethodUpdate | null>; unknown(language: Language): Page },
): void {
  const pattern = updateMethodPath(':token');
  const { openForm } = createOpener(deps, limits, { ...pages, pathOf: updateMethodPath });

  router.post(confirmPath(pattern), async (ctx) => {
    const opened = await openForm(ctx);
    if (opened === null) return;
    const { subject: update, home } = opened;
    const isOpen = updateStageOf(update, deps.now()) === 'open';
    const confirmation = isOpen ? confirmationOf(update) : null;
    const { owed } = update.state;
    if (confirmation === null || owed === null) {
      seeOther(ctx, home);
      return;
    }
    if (confirmation === 'offered') await begin(deps, update, owed);
    seeOther(ctx, bankPath(home, owed.intentId));
  });
}

/**
 * Opens the attempt that the payer confirms. Two clicks open one. A refused command changes nothing.
 * @throws DomainError `service_unavailable` if it is unknown whether the command was executed.
 */
async function begin(deps: ApiDeps, update: MethodUpdate, owed: OwedCycle): Promise<void> {
  const commandId = `authenticate:${owed.intentId}:${owed.attempts + 1}`;
  const { sessionId: checkoutSessionId } = update;
  // The bank sends the payer back to the page of the session, so the session must have its row.
  await ensureUpdateSession(deps.db, update, deps.now());
  try {
    const command = { kind: 'authenticatePayment', commandId, checkoutSessionId } as const;
    await executeCommand(deps.workflows, update, command);
  } catch (error) {
    if (!(error instanceof DomainError) || error.code === 'service_unavailable') throw error;
  }
}

/** Returns the page of a payment that the payer confirmed; null if the update page shows it, or if it is not paid. */
export async function confirmedPage(
  deps: ApiDeps,
  language: Language,
  update: MethodUpdate,
  intentId: string,
): Promise<Page | null> {
  if (updateStageOf(update, deps.now()) === 'paid') return null;
  const payment = await findCyclePayment(deps.db, { ...update, intentId });
  if (payment === null || !PAID.includes(payment.status)) return null;
  return paidPage(language, update, payment, await findPaid(deps.db, { ...update, intentId }));
}

function paidPage(
  language: Language,
  update: MethodUpdate,
  { amountMinor }: CyclePayment,
  paid: PaidPayment | null,
): Page {
  const { say, money } = language;
  const texts = [say('dueAmountPaid', { amount: money(amountMinor, update.state.terms.currency) })];
  const receipt = paidReceipt(language, update, paid);
  const back = { name: update.merchantName, url: null };
  return resultPage(language, { title: say('paymentReceived'), texts, receipt }, back);
}
