import type { Router } from '@koa/router';
import { findPaid } from '../../../db/repositories/payments/receipts.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import { findCyclePayment } from '../../../db/repositories/subscriptions/method-updates.ts';
import type { CyclePayment } from '../../../db/repositories/subscriptions/method-updates.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { OwedCycle } from '../../../domain/subscription/state.ts';
import type { Language } from '../../../page-parts/language.ts';
import { BANK_RETURN, updateMethodPath } from '../../../runtime/update-links.ts';
import { executeCommand } from '../../commands.ts';
import { pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { processingPage, resultPage } from '../shared/card-page.tsx';
import type { PageLimits } from '../shared/limits.ts';
import { createOpener } from '../shared/page-opener.ts';
import { seeOther, sendPage } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { bankPath, confirmPath, leaveForBankPage } from './confirmation.tsx';
import { paidReceipt } from './page.tsx';
import { confirmationOf, updateStageOf } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

const PAID = ['SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED'];

/**
 * Registers the routes on which a payer confirms the owed payment with the bank: the form with which the payer begins,
 * and the page that leads to the bank and shows the outcome after the return. Rules: D-30, D-33.
 */
export function confirmationRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: { find(token: string): Promise<MethodUpdate | null>; unknown(language: Language): Page },
): void {
  const pattern = updateMethodPath(':token');
  const { open, openForm } = createOpener(deps, limits, { ...pages, pathOf: updateMethodPath });

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

  router.get(bankPath(pattern, ':intentId'), async (ctx) => {
    const { subject: update, home, language } = await open(ctx);
    if (update === null) return;
    const intentId = pathParam(ctx, 'intentId');
    const payment = await findCyclePayment(deps.db, { ...update, intentId });
    if (payment !== null && PAID.includes(payment.status)) {
      const paid = await findPaid(deps.db, { ...update, intentId });
      sendPage(deps, ctx, paidPage(language, update, payment, paid));
      return;
    }
    if (payment === null || !isAwaited(payment)) {
      seeOther(ctx, home);
      return;
    }
    const path = bankPath(home, intentId);
    const returned = new URLSearchParams(ctx.querystring).get(BANK_RETURN);
    if (returned === null) {
      const url = payment.attempt?.payerUrl ?? null;
      sendPage(
        deps,
        ctx,
        url === null ? processingPage(language, path) : leaveForBankPage(language, url),
      );
      return;
    }
    // Only the return from the bank requests a look-up. The later requests of the waiting page do not. Above the limit
    // the scheduled look-up finds the outcome.
    const isReturn = returned === 'now' && ctx.method !== 'HEAD';
    if (isReturn && (await limits.countLookUp(ctx, update))) await recheck(deps, update);
    sendPage(deps, ctx, processingPage(language, `${path}?${BANK_RETURN}=before`));
  });
}

/**
 * Opens the attempt that the payer confirms. Two clicks have one command id, so they open one attempt. If the
 * command is refused, the page shows the subscription as it is. Throws `service_unavailable` if it is unknown whether
 * the command was executed.
 */
async function begin(deps: ApiDeps, update: MethodUpdate, owed: OwedCycle): Promise<void> {
  const commandId = `authenticate:${owed.intentId}:${owed.attempts + 1}`;
  try {
    await executeCommand(deps.workflows, update, { kind: 'authenticatePayment', commandId });
  } catch (error) {
    if (!(error instanceof DomainError) || error.code === 'service_unavailable') throw error;
  }
}

/**
 * Makes the workflow look the outcome up now. Never rejects: a failure is logged, and the scheduled look-up finds the
 * outcome later.
 */
async function recheck({ workflows, logger }: ApiDeps, update: MethodUpdate): Promise<void> {
  const { merchantId, subscriptionId } = update;
  await workflows.recheck({ merchantId, subscriptionId }).catch((err: unknown) => {
    logger.warn({ err, subscriptionId }, 'no recheck after a return from the bank');
  });
}

/** True while the payer can confirm the payment, or its outcome is not known yet. */
function isAwaited({ attempt }: CyclePayment): boolean {
  return (
    attempt?.trigger === 'authentication' &&
    attempt.state !== 'DECLINED' &&
    attempt.state !== 'SUCCEEDED'
  );
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
