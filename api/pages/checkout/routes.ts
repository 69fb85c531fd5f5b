import type { Router } from '@koa/router';
import {
  countTry,
  fillInDetails,
  findCheckout,
  markOpened,
  recordTry,
} from '../../../db/repositories/checkout-sessions.ts';
import type { Checkout } from '../../../db/repositories/checkout-sessions.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { CommandResult } from '../../../domain/subscription/commands.ts';
import { executeCommand } from '../../commands.ts';
import { pathParam } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readText } from '../../middleware/json-body.ts';
import {
  checkoutPage,
  detailsPage,
  foreignFormPage,
  pagePath,
  processingPage,
  unknownPage,
} from './page.tsx';
import { businessNow, missingDetails, openedEvent, stageOf } from './stage.ts';
import { readDetails } from '../shared/details-form.ts';
import { formToken, isOwnForm } from '../shared/form-token.ts';
import { seeOther, sendPage } from '../shared/page.tsx';

/** A details form is a few hundred bytes. */
const FORM_LIMIT_BYTES = 8_192;

/** What the tokeniser hands out; anything longer is none of its tokens. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** The hosted checkout behind `fwdUrl`. Works without script; a card number never comes here. */
export function checkoutRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  router.get('/checkout/:token', async (ctx) => {
    const { token, checkout } = await openCheckout(deps, ctx);
    if (checkout === null) return;
    const nowAt = businessNow(checkout, deps.now());
    await noteOpening(deps, ctx, checkout, nowAt);
    sendPage(deps, ctx, checkoutPage(deps, token, checkout, nowAt));
  });

  router.post('/checkout/:token', async (ctx) => {
    const form = new URLSearchParams(await readText(ctx.req, FORM_LIMIT_BYTES));
    const { token, checkout } = await openCheckout(deps, ctx);
    if (checkout === null) return;
    const expected = { ...deps, token: formToken(deps.sessionKey, checkout.sessionId) };
    if (!isOwnForm(ctx, expected, form.get('form_token') ?? '')) {
      sendPage(deps, ctx, foreignFormPage(token));
      return;
    }
    const nowAt = businessNow(checkout, deps.now());
    const typed = readDetails(form, missingDetails(checkout));
    const isRight = [...typed.values()].every(({ problem }) => problem === null);
    if (stageOf(checkout, nowAt) === 'open' && !isRight) {
      sendPage(deps, ctx, detailsPage(deps, token, checkout, nowAt, typed));
      return;
    }
    if (stageOf(checkout, nowAt) === 'open') {
      const given = [...typed].map(([name, { value }]) => [name, value] as const);
      await fillInDetails(deps.db, checkout, Object.fromEntries(given));
    }
    seeOther(ctx, pagePath(token));
  });

  /** The tokeniser sends the browser here. Reloading it makes no second attempt. */
  router.get('/checkout/:token/return', async (ctx) => {
    const { token, checkout } = await openCheckout(deps, ctx);
    if (checkout === null) return;
    const isOpen = checkout.state.status === 'CREATED';
    // HEAD is somebody looking at the link, not a payer coming back.
    if (!isOpen || ctx.method === 'HEAD') {
      seeOther(ctx, pagePath(token));
      return;
    }
    const isDecided = await completeCheckout(deps, ctx, checkout);
    if (isDecided) seeOther(ctx, pagePath(token));
    else sendPage(deps, ctx, processingPage(ctx.url));
  });
}

/** The checkout of the path's token; without one, the answer is given here. */
async function openCheckout(
  deps: ApiDeps,
  ctx: Context,
): Promise<{ token: string; checkout: Checkout | null }> {
  const token = pathParam(ctx, 'token');
  const checkout = /^[0-9A-Za-z]{22}$/.test(token) ? await findCheckout(deps.db, token) : null;
  if (checkout === null) sendPage(deps, ctx, unknownPage());
  return { token, checkout };
}

/** The first time a browser shows an open checkout; HEAD and prefetches do not count. Rule: D-51. */
async function noteOpening(
  { db, workflows }: ApiDeps,
  ctx: Context,
  checkout: Checkout,
  nowAt: number,
): Promise<void> {
  const isLooking = ctx.method === 'GET' && !ctx.get('Sec-Purpose').includes('prefetch');
  if (!isLooking || checkout.openedAt !== null || stageOf(checkout, nowAt) !== 'open') return;
  const isFirst = await markOpened(db, checkout, openedEvent(checkout, nowAt), nowAt);
  // The page does not wait for it: what is not woken now, the sweep finds.
  if (isFirst) {
    const { merchantId, subscriptionId: streamId } = checkout;
    void workflows.wakeStream({ merchantId, streamId });
  }
}

/**
 * Pays with what the tokeniser sent back. True when there is an outcome to show, false while there
 * is none. Throws `service_unavailable` when nothing is known; the same URL finds out. Rule: D-§4.
 */
async function completeCheckout(deps: ApiDeps, ctx: Context, checkout: Checkout): Promise<boolean> {
  const { db } = deps;
  const paymentToken = new URLSearchParams(ctx.querystring).get('payment_token') ?? '';
  if (!PAYMENT_TOKEN.test(paymentToken)) {
    // The tokeniser refused the card; without that parameter nobody tried anything.
    const refusal = new URLSearchParams(ctx.querystring).get('payment_error');
    if (refusal === null) return true;
    const errorCode = isDeclineCode(refusal) ? refusal : 'processing_error';
    await recordTry(db, checkout, { errorCode, counts: true });
    return true;
  }
  await countTry(db, checkout, paymentToken);
  const result = await pay(deps, checkout, paymentToken);
  if (result?.kind === 'checkout') {
    await recordTry(db, checkout, { errorCode: result.errorCode, counts: false });
  }
  return result !== null;
}

/** The result; null while it is not known; a refusal is for the page to tell, from the row. */
async function pay(
  deps: ApiDeps,
  checkout: Checkout,
  paymentToken: string,
): Promise<CommandResult | { kind: 'refused' } | null> {
  const command = {
    kind: 'completeCheckout',
    // One token is one try, however often its URL is loaded.
    commandId: paymentToken,
    paymentToken,
    checkoutSessionId: checkout.sessionId,
  } as const;
  try {
    return await executeCommand(deps.workflows, checkout, command);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'payment_outcome_pending') return null;
    if (error.code === 'service_unavailable') throw error;
    return { kind: 'refused' };
  }
}
