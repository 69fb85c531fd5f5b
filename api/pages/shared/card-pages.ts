import { createHash } from 'node:crypto';
import type { Router } from '@koa/router';
import { admitTry, declineTry, findTry } from '../../../db/repositories/checkouts/tries.ts';
import type { SessionRef } from '../../../db/repositories/checkouts/tries.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import { pathParam } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readDetails } from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { formToken, isOwnForm, readForm } from './own-form.ts';
import { CARD_TRIES_MAX } from './limits.ts';
import type { PageLimits } from './limits.ts';
import { confirmReturnPage, foreignFormPage } from './card-page.tsx';
import { browserOf, isOwnReturn } from './own-return.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';

/** Format of the tokeniser's one-time tokens: at most 200 characters. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** The outcome of submitting a card. */
export type CardOutcome =
  /** The outcome is in the database. The page shows it. */
  | { kind: 'decided' }
  | { kind: 'declined'; errorCode: string }
  /** The outcome is unknown. A later reload of the same URL shows it. */
  | { kind: 'pending' };

/** One kind of hosted page with a card form. `Subject`: the page's payment, subscription or setup session. */
export interface CardPages<Subject extends SessionRef> {
  /** Returns the path of the page with this token. */
  pathOf(token: string): string;
  /** The page for an unknown token. */
  readonly unknown: Page;
  find(token: string): Promise<Subject | null>;
  /** Returns the page in its present stage. `browser`: the id in the browser's cookie. */
  show(token: string, subject: Subject, browser: string): Page;
  /** True if the page shows a form for details or a card. */
  asks(subject: Subject): boolean;
  /** True if the outcome is final, so that no other card is accepted. */
  isDecided(subject: Subject): boolean;
  /**
   * Submits the card, once for each token. Throws `service_unavailable` if it is unknown whether the card
   * was submitted.
   */
  submit(subject: Subject, paymentToken: string): Promise<CardOutcome>;
  /** The page while the outcome of a card is unknown. The browser loads `url` every 3 s. */
  processing(url: string): Page;
  /** The details form before the card form. Absent if the page has none. */
  readonly details?: DetailsStep<Subject>;
  /** Called when a browser opens the page and the page shows a form. */
  opened?(subject: Subject): Promise<void>;
  /** Called before a new card is counted as a try. */
  beforeTry?(subject: Subject): Promise<void>;
  /** Called after a card was declined and the decline was counted. */
  afterDecline?(subject: Subject): Promise<void>;
}

export interface DetailsStep<Subject> {
  missing(subject: Subject): DetailName[];
  /** Returns the form again, with the problems of its fields. */
  askAgain(token: string, subject: Subject, typed: TypedDetails): Page;
  fillIn(subject: Subject, given: Partial<Record<DetailName, string>>): Promise<void>;
}

/**
 * Registers the routes of one kind of card page: the page, its details form, and the URL to which the
 * tokeniser redirects. The pages work without script. No card number reaches this server. Rule: D-11.
 */
export function cardPageRoutes<Subject extends SessionRef>(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
): void {
  const { details } = pages;
  const path = pages.pathOf(':token');

  /** Returns the subject of the path's token. For an unknown token, answers and returns a null subject. */
  const open = async (ctx: Context) => {
    const token = pathParam(ctx, 'token');
    const subject = await limits.lookUp(ctx, () => pages.find(token));
    if (subject === null) sendPage(deps, ctx, pages.unknown);
    return { token, subject, home: pages.pathOf(token) };
  };

  router.get(path, async (ctx) => {
    const { token, subject, home } = await open(ctx);
    if (subject === null) return;
    if (pages.asks(subject)) {
      await limits.expectFewDeclines(ctx);
      if (!isPreview(ctx)) await pages.opened?.(subject);
    }
    sendPage(deps, ctx, pages.show(token, subject, browserOf(deps, ctx, home)));
  });

  if (details) {
    router.post(path, async (ctx) => {
      const form = await readForm(ctx);
      const { token, subject, home } = await open(ctx);
      if (subject === null) return;
      const expected = { ...deps, token: formToken(deps.sessionKey, subject.sessionId) };
      if (!isOwnForm(ctx, expected, form.get('form_token') ?? '')) {
        sendPage(deps, ctx, foreignFormPage(home));
        return;
      }
      if (pages.asks(subject)) {
        const typed = readDetails(form, details.missing(subject));
        if ([...typed.values()].some(({ problem }) => problem !== null)) {
          sendPage(deps, ctx, details.askAgain(token, subject, typed));
          return;
        }
        const given = [...typed].map(([name, { value }]) => [name, value] as const);
        await details.fillIn(subject, Object.fromEntries(given));
      }
      seeOther(ctx, home);
    });
  }

  const finish = async (
    ctx: Context,
    { subject, home, isOwn }: { subject: Subject; home: string; isOwn: boolean },
  ): Promise<void> => {
    const returned = readReturn(ctx.querystring);
    const changesNothing = returned === null || pages.isDecided(subject) || isPreview(ctx);
    const taken = changesNothing
      ? 'shown'
      : await takeCard(deps, limits, ctx, pages, { subject, returned, isOwn });
    if (taken === 'shown') seeOther(ctx, home);
    else if (taken === 'pending') sendPage(deps, ctx, pages.processing(ctx.url));
    else sendPage(deps, ctx, confirmReturnPage(deps, ctx.url, subject.sessionId));
  };

  /** The tokeniser redirects the browser to this route. A reload makes no second attempt. */
  router.get(`${path}/return`, async (ctx) => {
    const { subject, home } = await open(ctx);
    if (subject !== null) await finish(ctx, { subject, home, isOwn: isOwnReturn(deps, ctx, home) });
  });

  /** Receives the form of `confirmReturnPage` from a browser that keeps no cookies. */
  router.post(`${path}/return`, async (ctx) => {
    const form = await readForm(ctx);
    const { subject, home } = await open(ctx);
    if (subject === null) return;
    const expected = { ...deps, token: formToken(deps.sessionKey, subject.sessionId) };
    if (isOwnForm(ctx, expected, form.get('form_token') ?? '')) {
      await finish(ctx, { subject, home, isOwn: true });
    } else sendPage(deps, ctx, foreignFormPage(home));
  });
}

/** True for HEAD and prefetch requests, which do not count as an opening of the page. Rule: D-51. */
function isPreview(ctx: Context): boolean {
  return ctx.method === 'HEAD' || ctx.get('Sec-Purpose').includes('prefetch');
}

/** The tokeniser's result: a token or a decline code. `key` is the same on every reload. */
interface Returned {
  readonly key: Buffer;
  readonly card: { kind: 'token'; token: string } | { kind: 'refused'; errorCode: string };
}

/** Reads the tokeniser's result from the query; null if the query contains none. */
function readReturn(querystring: string): Returned | null {
  const query = new URLSearchParams(querystring);
  const token = query.get('payment_token') ?? '';
  if (PAYMENT_TOKEN.test(token)) return { key: digest(token), card: { kind: 'token', token } };
  const refusal = query.get('payment_error');
  if (refusal === null) return null;
  const errorCode = isDeclineCode(refusal) ? refusal : 'processing_error';
  // `payment_error_id` distinguishes two cards that were refused with the same code.
  const key = digest(JSON.stringify([refusal, query.get('payment_error_id')]));
  return { key, card: { kind: 'refused', errorCode } };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/**
 * Submits the card. A repeat does not count as a second try. `shown`: the page shows the outcome, or that the
 * session has no tries left. `pending`: the outcome is unknown. `foreign`: nothing was done, because a foreign
 * page may have sent the browser here. Rule: D-§4.
 */
async function takeCard<Subject extends SessionRef>(
  { db, now }: ApiDeps,
  limits: PageLimits,
  ctx: Context,
  pages: CardPages<Subject>,
  given: { subject: Subject; returned: Returned; isOwn: boolean },
): Promise<'shown' | 'pending' | 'foreign'> {
  const { subject, isOwn } = given;
  const { key, card } = given.returned;
  const { merchantId, sessionId } = subject;
  const ref = { merchantId, sessionId, key };
  const known = await findTry(db, ref);
  if (known !== null && known.errorCode !== null) return 'shown';
  if (known === null) {
    if (!isOwn) return 'foreign';
    await limits.expectFewDeclines(ctx);
    await pages.beforeTry?.(subject);
    const isAdmitted = await admitTry(db, ref, { limit: CARD_TRIES_MAX, nowAt: now() });
    if (!isAdmitted) return 'shown';
  }
  const outcome: CardOutcome =
    card.kind === 'token'
      ? await pages.submit(subject, card.token)
      : { kind: 'declined', errorCode: card.errorCode };
  if (outcome.kind === 'declined' && (await declineTry(db, ref, outcome.errorCode))) {
    if (isOwn) await limits.countDecline(ctx);
    await pages.afterDecline?.(subject);
  }
  return outcome.kind === 'pending' ? 'pending' : 'shown';
}
