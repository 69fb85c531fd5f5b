import type { HostedSetup } from '../../../db/repositories/setup-methods/hosted.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import { setupMethodPath } from '../../page-links.ts';
import { callbackUrl } from '../shared/callback-url.ts';
import { cardText } from '../shared/card-text.ts';
import {
  askCard,
  askDetails,
  closedPage,
  lockedPage,
  resultPage,
  shownTestCards,
} from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { knownDetails, missingDetails } from '../shared/details-form.ts';
import type { TypedDetails } from '../shared/details-form.ts';
import type { Page } from '../shared/page.tsx';
import type { Sale } from '../shared/views.tsx';
import { setupStageOf } from './stage.ts';

const DECLINED_CARD =
  'Your card was declined and was not saved. Nothing was charged. Check the details and try again, ' +
  'or use another card.';

/** The page of a setup session in its present stage. Rules: IF-2.5, D-44. */
export function setupPage(
  deps: PageDeps,
  token: string,
  setup: HostedSetup,
  nowAt: number,
  browser: string,
): Page {
  const name = setup.merchantName;
  const onward = { name, url: withFacts(setup, nowAt) };
  switch (setupStageOf(setup, nowAt)) {
    case 'open':
      return missingDetails(setup).length > 0
        ? setupDetailsPage(deps, token, setup, nowAt, new Map())
        : askCard(deps, {
            home: setupMethodPath(token),
            browser,
            sessionId: setup.sessionId,
            sale: saleOf(deps, setup, nowAt),
            payerName: knownDetails(setup).name,
            alert: setup.lastErrorCode === null ? null : DECLINED_CARD,
          });
    case 'locked':
      return lockedPage(onward);
    case 'saved': {
      const texts = [
        `${name} can charge ${cardText(setup.card)} from now on, as you agreed with them.`,
        'Nothing was charged now.',
      ];
      return resultPage({ title: 'Your card was saved', texts }, onward);
    }
    case 'expired': {
      const texts = [`Nothing was saved. Ask ${name} for a new link if you still want to.`];
      return closedPage(410, { title: 'This page has expired', texts }, onward);
    }
  }
}

/** `typed` is empty on the first visit. */
export function setupDetailsPage(
  deps: PageDeps,
  token: string,
  setup: HostedSetup,
  nowAt: number,
  typed: TypedDetails,
): Page {
  return askDetails(deps, {
    home: setupMethodPath(token),
    sessionId: setup.sessionId,
    sale: saleOf(deps, setup, nowAt),
    names: missingDetails(setup),
    typed,
    button: 'Continue to your card',
  });
}

function saleOf(deps: PageDeps, setup: HostedSetup, nowAt: number): Sale {
  const { merchantName } = setup;
  return {
    merchantName,
    productName: `Save a card with ${merchantName}`,
    productDescription: `${merchantName} will be able to charge it later, as you agreed with them.`,
    offer: {
      heading: 'Your card',
      action: 'Save card',
      onceEntered: 'Nothing is charged.',
      lines: [{ label: 'Charged today', text: 'Nothing' }],
    },
    cancelUrl: withFacts(setup, nowAt),
    testCards: shownTestCards(deps, setup.mode),
  };
}

/** Returns `callbackUrl` with the ids and the status of the session as query parameters. Rule: D-44. */
function withFacts(setup: HostedSetup, nowAt: number): string {
  return callbackUrl(setup.callbackUrl, {
    setup_method_id: setup.setupMethodId,
    pm_id: setup.paymentMethodId,
    customer_id: setup.customerId,
    status: setupMethodStatusAt(setup, nowAt),
  });
}
