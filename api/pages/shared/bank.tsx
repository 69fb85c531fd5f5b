import type { ComponentChildren } from 'preact';
import type { Language } from '../parts/language.ts';
import { bankPath } from '../../../runtime/payer-links.ts';
import { notice } from './page.tsx';
import type { Page } from './page.tsx';
import type { ShownAttempt } from '../../../db/repositories/payments/shown-attempts.ts';

/** True while the payer can confirm the charge with the bank, or its outcome is not known yet. */
export function isAwaited(attempt: ShownAttempt | null): boolean {
  if (attempt === null || attempt.sessionId === null) return false;
  return attempt.state !== 'DECLINED' && attempt.state !== 'SUCCEEDED';
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

/** Returns the text about the latest card; null if none was declined, or if the bank waits for the payer. */
export function declinedText(
  { say }: Language,
  attempt: ShownAttempt | null,
  lastErrorCode: string | null,
): string | null {
  if (isAtBank(attempt)) return null;
  if (isUnconfirmed(attempt)) return say('notConfirmed');
  return attempt?.state === 'DECLINED' || lastErrorCode !== null ? say('paymentDeclined') : null;
}

/** Returns the page with a section above its content: the bank waits for the payer, who can also give another card. */
export function withBankAbove(
  { say }: Language,
  page: Page,
  { amount, alert, action }: { amount: string; alert?: string | null; action: ComponentChildren },
): Page {
  const content = (
    <>
      <section class="card">
        <h2>{say('bankWantsConfirmation', { amount })}</h2>
        {alert && (
          <p class="bad" role="alert">
            {alert}
          </p>
        )}
        {action}
        <p>{say('orAnotherCard')}</p>
      </section>
      {page.content}
    </>
  );
  return { ...page, content };
}

export function BankLink({
  language,
  home,
  intentId,
}: {
  language: Language;
  home: string;
  intentId: string;
}) {
  return (
    <a class="button" href={bankPath(home, intentId)}>
      {language.say('continueToBank')}
    </a>
  );
}

/**
 * The page that sends the browser to the bank. Chromium would block a redirect: it applies `form-action` to the
 * redirects after a form.
 */
export function leaveForBankPage(language: Language, payerUrl: string): Page {
  const texts = [language.say('bankAsks')];
  const title = language.say('continueToBank');
  const page = notice(language, 200, title, texts, { href: payerUrl, text: title });
  return { ...page, refresh: { seconds: 0, url: payerUrl } };
}
