import { BankLink, withBankAbove } from '../shared/bank.tsx';
import { formToken } from '../shared/own-requests.ts';
import type { PageRequest } from '../shared/card-page.tsx';
import type { Page } from '../shared/page.tsx';
import { confirmationOf, isLatestUnconfirmed } from './stage.ts';
import type { MethodUpdate } from './stage.ts';

/** Returns the path of the form with which the payer begins to confirm the owed payment. `home`: the page's path. */
export const confirmPath = (home: string): string => `${home}/bank`;

/**
 * Returns the page with the card form. If the bank asks the payer to confirm the owed payment, the page also offers
 * this confirmation.
 */
export function withConfirmation(
  { sessionKey, language, home }: PageRequest,
  update: MethodUpdate,
  amount: string,
  page: Page,
): Page {
  const confirmation = confirmationOf(update);
  const { owed } = update.state;
  const { say } = language;
  if (confirmation === null || owed === null) return page;
  const action =
    confirmation === 'offered' ? (
      <form method="post" action={confirmPath(home)}>
        <input type="hidden" name="form_token" value={formToken(sessionKey, update.sessionId)} />
        <button type="submit">{say('confirmWithBank')}</button>
      </form>
    ) : (
      <BankLink language={language} home={home} intentId={owed.intentId} />
    );
  const alert = isLatestUnconfirmed(update) ? say('notConfirmed') : null;
  return withBankAbove(language, page, { amount, alert, action });
}
