import { admitTry, declineTry, findTry, tryKey } from '../../../db/repositories/checkouts/tries.ts';
import type { CardOutcome } from '../../../domain/card-outcome.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import { mistypesIn } from '../parts/card-form.tsx';
import type { Language } from '../parts/language.ts';
import { bankPath } from '../../../runtime/payer-links.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { isAtBank, lookUp } from './bank.tsx';
import type { CardPages, CardRoutes, CardSubject, Opened } from './card-page-kind.ts';
import { cardGatewayOf, confirmPage, processingPage } from './card-page.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import type { PageLimits } from './limits.ts';
import { isOwnReturn } from './own-requests.ts';
import { isPastExpiry, isPreview } from './card-page-kind.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import { leaveBank } from '../../../db/repositories/payments/shown-attempts.ts';

/** Format of a gateway's one-time tokens: at most 200 characters. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** Registers the return URL. The gateway redirects the payer's browser to it after the payer entered a card. */
export function returnRoutes<Subject extends CardSubject>({
  router,
  deps,
  limits,
  pages,
  open,
  openForm,
}: CardRoutes<Subject>): void {
  const path = `${pages.pathOf(':token')}/return`;

  /** For a return without `isOwnReturn`. The page's button submits the card. */
  const confirmationOf = (ctx: Context, { sessionId }: Subject, language: Language): Page =>
    confirmPage({ ...deps, language }, 200, sessionId, {
      title: language.say('confirmTitle'),
      text: language.say('confirm'),
      button: language.say('continue'),
      action: ctx.url,
    });

  const finish = async (
    ctx: Context,
    { subject, home, outcome, language, isOwn }: Opened<Subject> & { isOwn: boolean },
  ): Promise<void> => {
    const returned = readReturn(ctx.querystring);
    const mistypes = returned === null ? mistypesIn(ctx.querystring) : [];
    const changesNothing = returned === null || pages.isDecided(subject) || isPreview(ctx);
    const taken = changesNothing
      ? 'shown'
      : await takeCard(deps, limits, ctx, pages, { subject, returned, isOwn });
    const bank = await bankAfter(deps, pages, subject, taken);
    if (bank !== null) seeOther(ctx, bankPath(home, bank));
    else if (mistypes.length > 0) seeOther(ctx, `${home}?mistyped=${mistypes.join()}`);
    else if (taken === 'shown') seeOther(ctx, outcome);
    else if (taken === 'foreign') sendPage(deps, ctx, confirmationOf(ctx, subject, language));
    else sendPage(deps, ctx, processingPage(language, ctx.url, pages.texts.processing));
  };

  router.get(path, async (ctx) => {
    const { subject, ...page } = await open(ctx);
    if (subject === null) return;
    await finish(ctx, { ...page, subject, isOwn: isOwnReturn(deps, ctx, page.home) });
  });

  /** The form of that page, for example of a browser that keeps no cookies. */
  router.post(path, async (ctx) => {
    const opened = await openForm(ctx);
    if (opened !== null) await finish(ctx, { ...opened, isOwn: true });
  });
}

type Taken = 'shown' | 'pending' | 'waiting' | 'foreign';

/**
 * Returns the intent that the bank asks this card's payer to confirm; null without one. Gives up the charge of another
 * card that the bank waits for.
 */
async function bankAfter<Subject extends CardSubject>(
  deps: ApiDeps,
  { bank }: CardPages<Subject>,
  subject: Subject,
  taken: Taken,
): Promise<string | null> {
  const intentId = bank?.intentOf(subject) ?? null;
  if (!bank || intentId === null) return null;
  if (taken === 'pending') {
    return isAtBank(await bank.attemptOf(subject, intentId)) ? intentId : null;
  }
  const { merchantId } = subject;
  if (taken === 'waiting' && (await leaveBank(deps.db, { merchantId, intentId }, deps.now()))) {
    await lookUp(deps, bank, subject);
  }
  return null;
}

/** The gateway's result: a token or a decline code. `key` is the same on every reload. */
interface Returned {
  readonly key: Buffer;
  readonly card: { kind: 'token'; token: string } | { kind: 'refused'; errorCode: string };
}

function readReturn(querystring: string): Returned | null {
  const query = new URLSearchParams(querystring);
  const token = query.get('payment_token') ?? '';
  if (PAYMENT_TOKEN.test(token)) return { key: tryKey(token), card: { kind: 'token', token } };
  const refusal = query.get('payment_error');
  if (refusal === null) return null;
  const errorCode = isDeclineCode(refusal) ? refusal : 'processing_error';
  // `payment_error_id` distinguishes two cards that were refused with the same code.
  const key = tryKey(JSON.stringify([refusal, query.get('payment_error_id')]));
  return { key, card: { kind: 'refused', errorCode } };
}

/**
 * Submits the card. A repeat does not count as a second try. `waiting`: the outcome of another card is unknown.
 * `foreign`: nothing was done, because a foreign page may have sent the browser here.
 */
async function takeCard<Subject extends CardSubject>(
  deps: ApiDeps,
  limits: PageLimits,
  ctx: Context,
  pages: CardPages<Subject>,
  given: { subject: Subject; returned: Returned; isOwn: boolean },
): Promise<Taken> {
  const { subject, isOwn } = given;
  const { key, card } = given.returned;
  const { merchantId, sessionId, mode } = subject;
  const { db, now } = deps;
  const page = {
    merchantId,
    sessionId,
    purpose: pages.purpose,
    subjectId: pages.subjectId(subject),
  };
  const ref = { merchantId, sessionId, key };
  const known = await findTry(db, ref);
  if (known !== null && known.errorCode !== null) return 'shown';
  if (known === null) {
    if (!isOwn) return 'foreign';
    // A card of the gateway's page passed this limit before, and the gateway's event submits it, too.
    const gateway = await cardGatewayOf(deps, merchantId);
    if (!gateway?.openCardEntry) await limits.expectFewDeclines(ctx, subject);
    await pages.beforeTry?.(subject);
    const isAdmitted = await admitTry(db, ref, { limit: CARD_TRIES_MAX[mode], nowAt: now() });
    if (!isAdmitted) return 'shown';
  }
  const outcome: CardOutcome =
    card.kind === 'token'
      ? await deps.submitCard(page, card.token)
      : { kind: 'declined', errorCode: card.errorCode };
  if (outcome.kind === 'declined' && (await declineTry(db, ref, outcome.errorCode))) {
    if (isOwn) await limits.countDecline(ctx, subject);
    await pages.afterDecline?.(subject);
  }
  // After the expiry this card would be refused, so the payer may still confirm the charge of the other one.
  if (outcome.kind === 'waiting') return isPastExpiry(pages, subject, now()) ? 'shown' : 'waiting';
  return outcome.kind === 'pending' ? 'pending' : 'shown';
}
