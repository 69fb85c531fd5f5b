import type { Language } from '../../../page-parts/language.ts';
import { formToken } from '../shared/own-form.ts';
import type { PageDeps } from '../shared/card-page.tsx';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { updateMethodPath } from '../../../runtime/update-links.ts';
import { confirmationOf, isLatestUnconfirmed } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

/** Returns the path of the form with which the payer begins to confirm the owed payment. `home`: the page's path. */
export const confirmPath = (home: string): string => `${home}/bank`;

/** Returns the path of the page that leads to the bank, and then shows the outcome of the payment. */
export const bankPath = (home: string, intentId: string): string => `${home}/bank/${intentId}`;

/**
 * Returns the page with the card form. If the bank asks the payer to confirm the owed payment, the page also offers
 * this confirmation. Rule: D-33.
 */
export function withConfirmation(
  { sessionKey, language }: Pick<PageDeps, 'sessionKey' | 'language'>,
  update: MethodUpdate,
  amount: string,
  page: Page,
): Page {
  const confirmation = confirmationOf(update);
  const { owed } = update.state;
  const { say } = language;
  if (confirmation === null || owed === null) return page;
  const home = updateMethodPath(update.token);
  const content = (
    <>
      <section class="card">
        <h2>{say('bankWantsConfirmation', { amount })}</h2>
        {isLatestUnconfirmed(update) && (
          <p class="bad" role="alert">
            {say('notConfirmed')}
          </p>
        )}
        {confirmation === 'offered' ? (
          <form method="post" action={confirmPath(home)}>
            <input
              type="hidden"
              name="form_token"
              value={formToken(sessionKey, update.sessionId)}
            />
            <button type="submit">{say('confirmWithBank')}</button>
          </form>
        ) : (
          <a class="button" href={bankPath(home, owed.intentId)}>
            {say('continueToBank')}
          </a>
        )}
        <p>{say('orAnotherCard')}</p>
      </section>
      {page.content}
    </>
  );
  return { ...page, content };
}

/**
 * The page that sends the browser to the bank. Chromium would block a redirect: it applies `form-action` to the
 * redirects that follow a form, and the bank's address is not known when the form is shown.
 */
export function leaveForBankPage(language: Language, payerUrl: string): Page {
  const texts = [language.say('bankAsks')];
  const title = language.say('continueToBank');
  const page = notice(language, 200, title, texts, { href: payerUrl, text: title });
  return { ...page, refresh: { seconds: 0, url: payerUrl } };
}
