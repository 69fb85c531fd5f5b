import {
  failSpentSetup,
  fillInSetupDetails,
  findHostedSetup,
} from '../../../db/repositories/setup-methods/sessions.ts';
import type { HostedSetup } from '../../../db/repositories/setup-methods/sessions.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import { setupMethodPath } from '../../../runtime/payer-links.ts';
import {
  askPayer,
  callbackUrl,
  closedPage,
  lockedPage,
  processingPage,
  resultPage,
  shownTestCards,
  unknownPage,
} from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { cardText, savedCardReceipt } from '../shared/receipt.ts';
import type { PageDeps, PageRequest } from '../shared/card-page.tsx';
import { declineText } from '../shared/decline-text.ts';
import type { Page } from '../shared/page.tsx';
import type { Sale } from '../shared/views.tsx';

export function setupMethodPageRoutes(routes: PageRoutes): void {
  const { db, now } = routes.deps;

  cardPageRoutes<HostedSetup>(routes, {
    pathOf: setupMethodPath,
    unknown: (language) => unknownPage(language, 'unknownSetup'),
    find: (token) => findHostedSetup(db, token),
    show: (request, setup) => setupPage(request, setup, now()),
    asks: (setup) => setupStageOf(setup, now()) === 'open',
    isDecided: (setup) => setupMethodStatusAt(setup, now()) !== 'CREATED',
    limitsOf: ({ tries, expiresAt }) => ({ tries, expiresAt }),
    purpose: 'setup_method',
    subjectId: ({ setupMethodId }) => setupMethodId,
    processing: (language, url) => processingPage(language, url, 'savingCard'),
    fillIn: (setup, given) => fillInSetupDetails(db, setup, given),
    afterDecline: (setup) => failSpentSetup(db, setup, CARD_TRIES_MAX[setup.mode]),
  });
}

function setupPage(request: PageRequest, setup: HostedSetup, nowAt: number): Page {
  const name = setup.merchantName;
  const { language } = request;
  const { say } = language;
  const onward = { name, url: withFacts(setup, nowAt) };
  switch (setupStageOf(setup, nowAt)) {
    case 'open':
      return askPayer(request, {
        subject: setup,
        sale: saleOf(request, setup, nowAt),
        alert:
          setup.lastErrorCode === null
            ? null
            : declineText(language, 'cardDeclined', setup.lastErrorCode),
        button: 'continueToYourCard',
      });
    case 'locked':
      return lockedPage(language, onward);
    case 'saved': {
      const card = setup.card === null ? say('yourCardInSentence') : cardText(language, setup.card);
      const texts = [say('canChargeNow', { name, card }), say('nothingChargedNow')];
      const saved = { card: setup.card, at: setup.completedAt, reference: setup.setupMethodId };
      const purchase = { productName: null, merchantName: name };
      const receipt = savedCardReceipt(language, saved, purchase);
      return resultPage(language, { title: say('cardSavedTitle'), texts, receipt }, onward);
    }
    case 'expired': {
      const texts = [say('setupExpired', { name })];
      return closedPage(language, 410, { title: say('setupExpiredTitle'), texts }, onward);
    }
  }
}

function saleOf(deps: PageDeps, setup: HostedSetup, nowAt: number): Sale {
  const { merchantName } = setup;
  const { language } = deps;
  const { say } = language;
  return {
    language,
    merchantName,
    productName: say('saveCardWith', { name: merchantName }),
    productDescription: say('canChargeLater', { name: merchantName }),
    offer: {
      heading: say('yourCard'),
      action: say('saveCard'),
      onceEntered: say('nothingIsCharged'),
      lines: [{ label: say('chargedToday'), text: say('nothing') }],
    },
    consent: say('consentSavedCard', { name: merchantName }),
    cancelUrl: withFacts(setup, nowAt),
    testCards: shownTestCards(deps, setup.mode),
  };
}

function withFacts(setup: HostedSetup, nowAt: number): string {
  return callbackUrl(setup.callbackUrl, {
    setup_method_id: setup.setupMethodId,
    pm_id: setup.paymentMethodId,
    customer_id: setup.customerId,
    status: setupMethodStatusAt(setup, nowAt),
  });
}

type SetupStage = 'open' | 'locked' | 'saved' | 'expired';

function setupStageOf(setup: HostedSetup, nowAt: number): SetupStage {
  switch (setupMethodStatusAt(setup, nowAt)) {
    case 'CREATED':
      return setup.tries >= CARD_TRIES_MAX[setup.mode] ? 'locked' : 'open';
    case 'SUCCESS':
      return 'saved';
    case 'FAILED':
      return 'locked';
    case 'CANCELLED':
      return 'expired';
  }
}
