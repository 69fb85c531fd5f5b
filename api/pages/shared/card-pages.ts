import { createHash } from 'node:crypto';
import type { Router } from '@koa/router';
import { admitTry, declineTry, findTry } from '../../../db/repositories/checkout-tries.ts';
import type { SessionRef } from '../../../db/repositories/checkout-tries.ts';
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

/** What the tokeniser hands out; anything longer is none of its tokens. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** What came of handing a card on. */
export type CardOutcome =
  /** The page says what, from the rows. */
  | { kind: 'decided' }
  | { kind: 'declined'; errorCode: string }
  /** Nobody knows yet: the same address asks again. */
  | { kind: 'pending' };

/** A kind of hosted page that takes a card: what it is about, and what a card does there. */
export interface CardPages<Subject extends SessionRef> {
  /** The address of the page that a token opens. */
  pathOf(token: string): string;
  /** For a token that opens nothing. */
  readonly unknown: Page;
  find(token: string): Promise<Subject | null>;
  /** The page as things stand. */
  show(token: string, subject: Subject): Page;
  /** True while the page asks for something: details or a card. */
  asks(subject: Subject): boolean;
  /** True when no card can change anything any more. */
  isDecided(subject: Subject): boolean;
  /** Hands the card on, once for each token. Throws `service_unavailable` when nothing is known. */
  submit(subject: Subject, paymentToken: string): Promise<CardOutcome>;
  /** While nobody knows what came of a card; `url` asks again. */
  processing(url: string): Page;
  /** What the payer is asked before the card; without it, nothing. */
  readonly details?: DetailsStep<Subject>;
  /** A browser shows the page while it asks. */
  opened?(subject: Subject): Promise<void>;
  /** The first try with a card is about to be counted. */
  beforeTry?(subject: Subject): Promise<void>;
  /** A card was declined and counted. */
  afterDecline?(subject: Subject): Promise<void>;
}

export interface DetailsStep<Subject> {
  missing(subject: Subject): DetailName[];
  /** The form again, with what is wrong. */
  askAgain(token: string, subject: Subject, typed: TypedDetails): Page;
  fillIn(subject: Subject, given: Partial<Record<DetailName, string>>): Promise<void>;
}

/**
 * The addresses of a kind of card page: the page, its details form, and where the tokeniser sends the
 * browser back to. Works without script; a card number never comes here. Rules: D-11, reliability §4.
 */
export function cardPageRoutes<Subject extends SessionRef>(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
): void {
  const { details } = pages;
  const path = pages.pathOf(':token');

  /** What the path's token opens; without anything, the answer is given here. */
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
      if (!isOnlyLooking(ctx)) await pages.opened?.(subject);
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

  /** The tokeniser sends the browser here. Reloading it makes no second attempt. */
  router.get(`${path}/return`, async (ctx) => {
    const { subject, home } = await open(ctx);
    if (subject === null) return;
    const returned = readReturn(ctx.querystring);
    const changesNothing = returned === null || pages.isDecided(subject) || isOnlyLooking(ctx);
    if (changesNothing || (await takeCard(deps, limits, ctx, pages, subject, returned))) {
      seeOther(ctx, home);
    } else {
      sendPage(deps, ctx, pages.processing(ctx.url));
    }
  });
}

/** Somebody, or something, looks at the address; no payer is there. Rule: D-51. */
function isOnlyLooking(ctx: Context): boolean {
  return ctx.method === 'HEAD' || ctx.get('Sec-Purpose').includes('prefetch');
}

/** What the tokeniser sent: a token, or why it gave none. `key` is the same on every reload. */
interface Returned {
  readonly key: Buffer;
  readonly card: { kind: 'token'; token: string } | { kind: 'refused'; errorCode: string };
}

/** Null when nobody tried anything. */
function readReturn(querystring: string): Returned | null {
  const query = new URLSearchParams(querystring);
  const token = query.get('payment_token') ?? '';
  if (PAYMENT_TOKEN.test(token)) return { key: digest(token), card: { kind: 'token', token } };
  const refusal = query.get('payment_error');
  if (refusal === null) return null;
  const errorCode = isDeclineCode(refusal) ? refusal : 'processing_error';
  // The same code twice is two cards when the tokeniser says so.
  const key = digest(JSON.stringify([refusal, query.get('payment_error_id')]));
  return { key, card: { kind: 'refused', errorCode } };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

/**
 * Hands the card on, counted once however often this is asked. True when the page has something to
 * show: an outcome, or that there were too many. False while nobody knows. Rules: D-§4, reliability §4.
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
