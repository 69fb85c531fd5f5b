import type { Router } from '@koa/router';
import {
  failSpentSetup,
  fillInSetupDetails,
  findHostedSetup,
} from '../../../db/repositories/setup-methods/hosted.ts';
import type { HostedSetup } from '../../../db/repositories/setup-methods/hosted.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { setupMethodPath } from '../../../runtime/payer-links.ts';
import { processingPage, unknownPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import type { PageLimits } from '../shared/limits.ts';
import { setupPage, setupStageOf } from './page.tsx';

export function setupMethodPageRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
): void {
  const { db, now } = deps;

  cardPageRoutes<HostedSetup>(router, deps, limits, {
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
