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
import { foreignFormPage } from './card-page.tsx';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';

/** Format of the tokeniser's one-time tokens: at most 200 characters. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** The outcome of submitting a card. */
export type CardOutcome =
  /** The page shows the outcome from the rows. */
  | { kind: 'decided' }
  | { kind: 'declined'; errorCode: string }
  /** Not decided yet. A reload of the same URL asks again. */
  | { kind: 'pending' };

/** One kind of hosted page with a card form. `Subject` is the record that the page is about. */
export interface CardPages<Subject extends SessionRef> {
  /** The path of the page that a token opens. */
  pathOf(token: string): string;
  /** Shown for an unknown token. */
  readonly unknown: Page;
  find(token: string): Promise<Subject | null>;
  /** The page in its present stage. */
  show(token: string, subject: Subject): Page;
  /** True while the page shows a form for details or a card. */
  asks(subject: Subject): boolean;
  /** True when the outcome is final, so that another card changes nothing. */
  isDecided(subject: Subject): boolean;
  /**
   * Submits the card, once for each token. Throws `service_unavailable` when it is unknown whether the
   * card was submitted.
   */
  submit(subject: Subject, paymentToken: string): Promise<CardOutcome>;
  /** Shown while the outcome of a card is unknown. A reload of `url` asks again. */
  processing(url: string): Page;
  /** The details form before the card form. Absent when the page has none. */
  readonly details?: DetailsStep<Subject>;
  /** Called when a browser opens the page while it shows a form. */
  opened?(subject: Subject): Promise<void>;
  /** Called before a new card is counted as a try. */
  beforeTry?(subject: Subject): Promise<void>;
  /** Called after a card was declined and the decline was counted. */
  afterDecline?(subject: Subject): Promise<void>;
}

export interface DetailsStep<Subject> {
  missing(subject: Subject): DetailName[];
  /** The form again, with the problems of its fields. */
  askAgain(token: string, subject: Subject, typed: TypedDetails): Page;
  fillIn(subject: Subject, given: Partial<Record<DetailName, string>>): Promise<void>;
}

/**
 * The routes of one kind of card page: the page, its details form, and the tokeniser's return URL. The
 * pages work without script. A card number never reaches this server. Rule: D-11.
 */
export function cardPageRoutes<Subject extends SessionRef>(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
): void {
  const { details } = pages;
  const path = pages.pathOf(':token');

  /** Finds the subject of the path's token. Sends the answer itself when there is none. */
  const open = async (ctx: Context) => {
    const token = pathParam(ctx, 'token');
    const subject = await limits.lookUp(ctx, () => pages.find(token));
    if (subject === null) sendPage(deps, ctx, pages.unknown);
    return { token, subject, home: pages.pathOf(token) };
  };

  router.get(path, async (ctx) => {
    const { token, subject } = await open(ctx);
    if (subject === null) return;
    if (pages.asks(subject)) {
      await limits.expectFewDeclines(ctx);
      if (!isPreview(ctx)) await pages.opened?.(subject);
    }
    sendPage(deps, ctx, pages.show(token, subject));
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

  /** The tokeniser redirects the browser here. A reload makes no second attempt. */
  router.get(`${path}/return`, async (ctx) => {
    const { subject, home } = await open(ctx);
    if (subject === null) return;
    const returned = readReturn(ctx.querystring);
    const changesNothing = returned === null || pages.isDecided(subject) || isPreview(ctx);
    if (changesNothing || (await takeCard(deps, limits, ctx, pages, subject, returned))) {
      seeOther(ctx, home);
    } else {
      sendPage(deps, ctx, pages.processing(ctx.url));
    }
  });
}

/** True for HEAD and prefetch requests: no payer opened the page. Rule: D-51. */
function isPreview(ctx: Context): boolean {
  return ctx.method === 'HEAD' || ctx.get('Sec-Purpose').includes('prefetch');
}

/** The tokeniser's result: a token or a decline code. `key` is the same on every reload. */
interface Returned {
  readonly key: Buffer;
  readonly card: { kind: 'token'; token: string } | { kind: 'refused'; errorCode: string };
}

/** Null when the query holds no result of the tokeniser. */
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
 * Submits the card. Repeated calls count the try once. True when the page can show an outcome, or that
 * the session has no tries left. False while the outcome is unknown. Rule: D-§4.
 */
async function takeCard<Subject extends SessionRef>(
  { db, now }: ApiDeps,
  limits: PageLimits,
  ctx: Context,
  pages: CardPages<Subject>,
  subject: Subject,
  { key, card }: Returned,
): Promise<boolean> {
  const { merchantId, sessionId } = subject;
  const ref = { merchantId, sessionId, key };
  const known = await findTry(db, ref);
  if (known !== null && known.errorCode !== null) return true;
  if (known === null) {
    await limits.expectFewDeclines(ctx);
    await pages.beforeTry?.(subject);
    const isAdmitted = await admitTry(db, ref, { limit: CARD_TRIES_MAX, nowAt: now() });
    if (!isAdmitted) return true;
  }
  const outcome: CardOutcome =
    card.kind === 'token'
      ? await pages.submit(subject, card.token)
      : { kind: 'declined', errorCode: card.errorCode };
  if (outcome.kind === 'declined' && (await declineTry(db, ref, outcome.errorCode))) {
    await limits.countDecline(ctx);
    await pages.afterDecline?.(subject);
  }
  return outcome.kind !== 'pending';
}
