import type { Language } from '../../../domain/language/language.ts';
import { BANK_RETURN, bankPath } from '../../../runtime/payer-links.ts';
import { asError, seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import type { ShownAttempt } from '../../../db/repositories/payments/shown-attempts.ts';
import { isStorable } from '../../../domain/storable-text.ts';
import { pathParam } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { leavePage, processingPage } from './card-page.tsx';
import { declineText } from '../../../domain/language/decline-text.ts';
import type { PageRequest } from './card-page.tsx';
import { Alert } from './views.tsx';
import { amountOf } from './card-page-kind.ts';
import type { BankConfirmation, CardPages, CardRoutes, CardSubject } from './card-page-kind.ts';

function isUndecided(attempt: ShownAttempt | null): boolean {
  return attempt !== null && attempt.state !== 'DECLINED' && attempt.state !== 'SUCCEEDED';
}

/** True while the payer of a page can confirm its charge with the bank, or its outcome is not known yet. */
export function isAwaited(attempt: ShownAttempt | null): boolean {
  return isUndecided(attempt) && attempt?.sessionId !== null;
}

export function isAtBank(attempt: ShownAttempt | null): boolean {
  return isAwaited(attempt) && attempt?.payerUrl !== null;
}

/** True if the bank asked the payer to confirm the latest charge, and the payer did not. */
export function isUnconfirmed(attempt: ShownAttempt | null): boolean {
  return (
    attempt?.state === 'DECLINED' &&
    attempt.payerAskedAt !== null &&
    attempt.errorCode === 'authentication_required'
  );
}

export function declinedText(
  language: Language,
  attempt: ShownAttempt | null,
  lastErrorCode: string | null,
): string | null {
  if (isAtBank(attempt)) return null;
  if (isUnconfirmed(attempt)) return language.say('notConfirmed');
  const isDeclined = attempt?.state === 'DECLINED';
  if (lastErrorCode === null && !isDeclined) return null;
  // A card that could not be saved has no attempt, and is the later one. A decline after the bank is only in its attempt.
  const ofAttempt = isDeclined ? attempt.errorCode : null;
  const code =
    isDeclined && attempt.payerAskedAt !== null ? ofAttempt : (lastErrorCode ?? ofAttempt);
  return declineText(language, 'paymentDeclined', code);
}

/** Returns the page with a section above its content, if it has any: the payer can confirm with the bank. */
export function withBankAbove(page: Page, { amount, alert, action }: BankConfirmation): Page {
  const { say } = page.language;
  const content = (
    <>
      <section class="card">
        <h2>{say('bankWantsConfirmation', { amount })}</h2>
        {alert && <Alert text={alert} />}
        {action}
        {page.content && <p>{say('orAnotherCard')}</p>}
      </section>
      {page.content}
    </>
  );
  const shown = { ...page, content };
  return alert && !page.isError ? asError(shown) : shown;
}

export function bankLink({ language, home }: PageRequest, intentId: string) {
  return (
    <a class="button" href={bankPath(home, intentId)}>
      {language.say('continueToBank')}
    </a>
  );
}

/** The page leads to the bank, waits after the return, and then redirects to our page with the outcome. */
export function bankRoutes<Subject extends CardSubject>({
  router,
  deps,
  limits,
  pages,
  open,
}: CardRoutes<Subject>): void {
  const { bank } = pages;
  if (!bank) return;
  router.get(bankPath(pages.pathOf(':token'), ':intentId'), async (ctx) => {
    const { subject, home, outcome: shownAt, language } = await open(ctx);
    if (subject === null) return;
    const intentId = pathParam(ctx, 'intentId');
    if (!isStorable(intentId)) return seeOther(ctx, home); // as for an unknown intent
    const attempt = await bank.attemptOf(subject, intentId);
    // A charge of the present card has no session. Its payer waits here, too, and must not pay it again.
    if (!isUndecided(attempt)) {
      const outcome = (await bank.outcomeOf?.(language, subject, intentId)) ?? null;
      if (outcome === null) seeOther(ctx, shownAt);
      else sendPage(deps, ctx, outcome);
      return;
    }
    const amount = amountOf(pages, language, subject);
    const path = bankPath(home, intentId);
    const returned = new URLSearchParams(ctx.querystring).get(BANK_RETURN);
    if (returned === null) {
      const url = attempt?.payerUrl ?? null;
      const { say } = language;
      const page =
        url === null
          ? processingPage(language, path, amount)
          : leavePage(language, say('continueToBank'), say('bankAsks'), url);
      return sendPage(deps, ctx, page);
    }
    // Only the return requests a look-up. Above the limit the scheduled look-up finds the outcome.
    const isReturn = returned === 'now' && ctx.method !== 'HEAD';
    if (isReturn && (await limits.countLookUp(ctx, subject))) await lookUp(deps, bank, subject);
    sendPage(deps, ctx, processingPage(language, `${path}?${BANK_RETURN}=before`, amount));
  });
}

/**
 * Makes the workflow look up the outcome now. Never rejects: a failure is logged, and the scheduled look-up finds the
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
