import type { Router } from '@koa/router';
import { BANK_RETURN, bankPath } from '../../../runtime/payer-links.ts';
import { isStorable } from '../../../domain/storable-text.ts';
import { pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { isAwaited, leaveForBankPage } from './bank.tsx';
import { processingPage } from './card-page.tsx';
import type { CardPages, CardSubject } from './card-page-kind.ts';
import type { PageLimits } from './limits.ts';
import type { PageOpener } from './page-opener.ts';
import { seeOther, sendPage } from './page.tsx';

/**
 * Registers the page that leads a payer to the bank, waits for the outcome after the return, and then redirects to our
 * page, which shows the outcome.
 */
export function bankRoutes<Subject extends CardSubject>(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
  { open }: PageOpener<Subject>,
): void {
  const { bank } = pages;
  if (!bank) return;
  router.get(bankPath(pages.pathOf(':token'), ':intentId'), async (ctx) => {
    const { subject, home, language } = await open(ctx);
    if (subject === null) return;
    const intentId = pathParam(ctx, 'intentId');
    if (!isStorable(intentId)) return seeOther(ctx, home); // as for an unknown intent
    const attempt = await bank.attemptOf(subject, intentId);
    if (!isAwaited(attempt)) {
      const outcome = (await bank.outcomeOf?.(language, subject, intentId)) ?? null;
      if (outcome === null) seeOther(ctx, home);
      else sendPage(deps, ctx, outcome);
      return;
    }
    const path = bankPath(home, intentId);
    const returned = new URLSearchParams(ctx.querystring).get(BANK_RETURN);
    if (returned === null) {
      const url = attempt?.payerUrl ?? null;
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
    if (isReturn && (await limits.countLookUp(ctx, subject))) await lookUp(deps, bank, subject);
    sendPage(deps, ctx, processingPage(language, `${path}?${BANK_RETURN}=before`));
  });
}

/**
 * Makes the workflow look the outcome up now. Never rejects: a failure is logged, and the scheduled look-up finds the
 * outcome later.
 */
export async function lookUp<Subject extends CardSubject>(
  { logger }: Pick<ApiDeps, 'logger'>,
  bank: NonNullable<CardPages<Subject>['bank']>,
  subject: Subject,
): Promise<void> {
  await bank.lookUp(subject).catch((err: unknown) => {
    logger.warn({ err, sessionId: subject.sessionId }, 'no look-up of a charge at the bank');
  });
}
