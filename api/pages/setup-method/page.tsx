import {
  failSpentSetup,
  fillInSetupDetails,
  findHostedSetup,
} from '../../../db/repositories/setup-methods/sessions.ts';
import type { HostedSetup } from '../../../db/repositories/setup-methods/sessions.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import { setupMethodPath } from '../../../runtime/payer-links.ts';
import { callbackUrl, endPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import type { Asked, CardStage, PageRoutes } from '../shared/card-page-kind.ts';
import { cardText } from '../../../domain/language/card-text.ts';
import { savedCardReceipt } from '../shared/receipt.ts';
import type { Language } from '../../../domain/language/language.ts';
import { declineText } from '../../../domain/language/decline-text.ts';
import type { Page } from '../shared/page.tsx';
import type { SaleText } from '../shared/views.tsx';

export function setupMethodPageRoutes(routes: PageRoutes): void {
  const { db, now } = routes.deps;

  cardPageRoutes<HostedSetup>(routes, {
    pathOf: setupMethodPath,
    texts: { expired: 'setupExpired', processing: 'savingCard' },
    find: (token) => findHostedSetup(db, token),
    stageOf: (setup) => setupStageOf(setup, now()),
    asked: askedOf,
    ownPage: (language, setup) => savedPage(language, setup, withFacts(setup, now())),
    leaveUrl: (setup) => withFacts(setup, now()),
    isDecided: (setup) => setupMethodStatusAt(setup, now()) !== 'CREATED',
    limitsOf: ({ tries, expiresAt }) => ({ tries, expiresAt }),
    purpose: 'setup_method',
    subjectId: ({ setupMethodId }) => setupMethodId,
    fillIn: (setup, given) => fillInSetupDetails(db, setup, given),
    afterDecline: (setup) => failSpentSetup(db, setup, CARD_TRIES_MAX[setup.mode]),
  });
}

function askedOf({ language }: { language: Language }, setup: HostedSetup): Asked {
  const { lastErrorCode: code } = setup;
  return {
    sale: saleOf(language, setup),
    alert: code === null ? null : declineText(language, 'cardDeclined', code),
    button: 'continueToYourCard',
  };
}

function savedPage(language: Language, setup: HostedSetup, url: string): Page {
  const { say } = language;
  const name = setup.merchantName;
  const { card } = setup;
  const texts = [
    ...(card === null ? [] : [say('canChargeNow', { name, card: cardText(language, card) })]),
    say('nothingChargedNow'),
  ];
  const saved = { card, at: setup.completedAt, reference: setup.setupMethodId, kind: null };
  const purchase = { productName: null, merchantName: name };
  const receipt = savedCardReceipt(language, saved, purchase);
  return endPage(language, 200, { title: say('cardSavedTitle'), texts, receipt }, { name, url });
}

function saleOf({ say, money }: Language, { merchantName, currency }: HostedSetup): SaleText {
  return {
    merchantName,
    productName: say('saveCardWith', { name: merchantName }),
    productDescription: say('canChargeLater', { name: merchantName }),
    offer: {
      heading: say('yourCard'),
      action: say('saveCard'),
      onceEntered: say('nothingIsChargedToday'),
      lines: [{ label: say('chargedToday'), text: money(0, currency), isSum: true }],
    },
    consent: say('consentSavedCard', { name: merchantName }),
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

function setupStageOf(setup: HostedSetup, nowAt: number): CardStage {
  switch (setupMethodStatusAt(setup, nowAt)) {
    case 'CREATED':
      return setup.tries >= CARD_TRIES_MAX[setup.mode] ? 'locked' : 'open';
    case 'SUCCESS':
      return 'done';
    case 'FAILED':
      return 'locked';
    case 'CANCELLED':
      return 'expired';
  }
}
