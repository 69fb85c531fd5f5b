import type { ComponentChildren } from 'preact';
import { usableBranding } from '../../../domain/branding.ts';
import { declarationKinds } from '../../../domain/declaration.ts';
import type { Contract } from '../../../domain/declaration.ts';
import { declarationPath } from '../../../runtime/payer-links.ts';
import { checkUnanswered } from '../../../runtime/request-scope.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { FIXED_WORDS } from '../../../domain/language/fixed-words.ts';
import type { Language } from '../../../domain/language/language.ts';
import { renderPage } from '../parts/layout.tsx';
import type { PageFrame } from '../parts/layout.tsx';
import { WAIT_SCRIPT } from '../parts/scripts.tsx';
import { NoticePage } from './views.tsx';
import type { ListRow } from './views.tsx';
import { LOCALES } from '../../../domain/locales.ts';
import type { Locale } from '../../../domain/locales.ts';
import { languageOf } from '../../../domain/language/language.ts';

export interface Page extends Omit<PageFrame, 'nonce' | 'branding' | 'merchantName' | 'children'> {
  readonly status: number;
  /** The origin of another server to which a form of the page posts. */
  readonly formOrigin?: string;
  readonly content: ComponentChildren;
  readonly isError?: boolean;
  /** The contract of a receipt, which the payer may cancel or withdraw from. */
  readonly contract?: Contract | undefined;
}

/** A page whose title, which a screen reader reads first, begins with the word for an error. */
export function asError<Titled extends Pick<Page, 'language' | 'title'>>(page: Titled) {
  const title = page.language.say('errorTitle', { title: page.title });
  return { ...page, title, isError: true };
}

type Deps = Pick<ApiDeps, 'random'>;

/**
 * Sends a page with a policy that allows our style, its script, images from the logo's origin, and forms to this
 * server and `formOrigin`, to which Chromium also holds the redirects after a form.
 */
export function sendPage({ random }: Deps, ctx: Context, page: Page): void {
  checkUnanswered();
  const { id, name: merchantName, settings } = ctx.state.pageMerchant ?? {};
  const branding = usableBranding(settings?.branding ?? {});
  const nonce = Buffer.from(random(16)).toString('base64');
  const { language, status, title, refresh, wait, content } = page;
  const script = wait ? WAIT_SCRIPT : page.script;
  ctx.set(
    'Content-Security-Policy',
    [
      "default-src 'none'",
      `style-src 'nonce-${nonce}'`,
      ...(branding.logoUrl === undefined ? [] : [`img-src ${new URL(branding.logoUrl).origin}`]),
      ...(script ? [`script-src ${script.source}`] : []),
      ...(wait ? ["connect-src 'self'"] : []),
      ["form-action 'self'", page.formOrigin].filter(Boolean).join(' '),
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  );
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  const leave = id === undefined || !page.contract ? [] : leaveLinks(language, id, page.contract);
  const frame = { language, title, merchantName, nonce, branding, leave, refresh, wait, script };
  ctx.body = renderPage({ ...frame, children: content });
}

function leaveLinks({ locale }: Language, merchantId: string, contract: Contract) {
  return declarationKinds(contract).map((kind) => ({
    href: declarationPath(kind, merchantId, contract.reference),
    text: FIXED_WORDS[locale][kind].link,
  }));
}

export function notice(
  language: Language,
  status: number,
  title: string,
  texts: readonly string[],
  link?: { href: string; text: string },
  rows?: readonly ListRow[],
): Page {
  const content = <NoticePage {...{ language, title, texts, rows, link }} />;
  const contract = rows?.find((row) => row.contract !== undefined)?.contract;
  return { language, status, title, content, contract };
}

/** Redirects with 303, so that a reload of the next page does not repeat this request. */
export function seeOther(ctx: Context, location: string): void {
  checkUnanswered();
  ctx.status = 303;
  ctx.set('Location', location);
}

/**
 * Refuses a request that another site's page embeds, for example as an image, before the request can count
 * towards a limit of the payer's address. Browsers mark such requests with `Sec-Fetch-` headers.
 */
export function refuseEmbedding(deps: Deps) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const isForeign = ['cross-site', 'same-site'].includes(ctx.get('Sec-Fetch-Site'));
    if (!isForeign || ['', 'document'].includes(ctx.get('Sec-Fetch-Dest'))) {
      await next();
      return;
    }
    const language = languageFor(ctx);
    const texts = [language.say('embedded')];
    sendPage(deps, ctx, notice(language, 403, language.say('embeddedTitle'), texts));
  };
}

/** A payer gets each error as a page, also that of the deadline. */
export function pageErrors(deps: Deps & Pick<ApiDeps, 'now'>) {
  return (ctx: Context, next: () => Promise<unknown>): Promise<unknown> => {
    ctx.state.sendError = ({ code, retryAfterSeconds }) =>
      sendPage(
        deps,
        ctx,
        retryAfterSeconds === undefined
          ? errorPage(code, ctx)
          : tooManyPage(languageFor(ctx), deps.now(), retryAfterSeconds),
      );
    return next();
  };
}

const MINUTE_MS = 60_000;

/** Returns the page for a client address that has reached a limit. It says when the limit ends, in full minutes. */
function tooManyPage(language: Language, nowAt: number, retryAfterSeconds: number): Page {
  const { say } = language;
  const endsAt = Math.ceil((nowAt + retryAfterSeconds * 1_000) / MINUTE_MS) * MINUTE_MS;
  const minutes = language.minutes(Math.ceil(retryAfterSeconds / 60));
  const texts = [say('tooMany', { minutes, time: language.time(endsAt) })];
  return notice(language, 429, say('tooManyTitle'), texts);
}

const RELOAD_AFTER_S = 10;

function errorPage(code: string, ctx: Context): Page {
  const language = languageFor(ctx);
  const { say } = language;
  if (code === 'bad_request') return notice(language, 400, say('badFormTitle'), [say('badForm')]);
  const isTemporary = code === 'service_unavailable';
  const status = isTemporary ? 503 : 500;
  const page = notice(language, status, say('unavailableTitle'), [say('unavailable')]);
  // A page after a POST does not wait: a request for its URL would not send the form again.
  return isTemporary && ctx.method === 'GET'
    ? { ...page, wait: { seconds: RELOAD_AFTER_S, url: ctx.url } }
    : page;
}

/** `chosen`, the merchant's locale, also holds for later calls with this request. */
export function languageFor(ctx: Context, chosen: Locale | null = null): Language {
  if (chosen !== null) ctx.state.pageLocale = chosen;
  return languageOf(ctx.state.pageLocale ?? acceptedLocale(ctx));
}

function acceptedLocale(ctx: Context): Locale {
  const accepted = ctx.acceptsLanguages([...LOCALES]);
  return LOCALES.find((locale) => locale === accepted) ?? 'en';
}
