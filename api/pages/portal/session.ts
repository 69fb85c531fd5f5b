import {
  claimPortalSession,
  findPortalSession,
} from '../../../db/repositories/customers/portal-sessions.ts';
import type { PortalSession } from '../../../db/repositories/customers/portal-sessions.ts';
import { isToken, randomToken } from '../../../domain/ids.ts';
import { hashToken } from '../../../db/repositories/checkouts/sessions.ts';
import { portalPath } from '../../../runtime/payer-links.ts';
import { pathParam } from '../../http/request.ts';
import type { Context } from '../../http/request.ts';
import type { Language } from '../../../domain/language/language.ts';
import { confirmPage, endPage, foreignFormPage, unknownPage } from '../shared/card-page.tsx';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { isOwnForm, readForm, setCookie } from '../shared/own-requests.ts';
import { languageFor, sendPage } from '../shared/page.tsx';

const COOKIE = 'portal';

export interface OpenedPortal extends PortalSession {
  readonly language: Language;
  readonly home: string;
}

/** The link to a payer's own page belongs to the first browser whose payer presses its button, until it expires. */
export function portalSessions({ deps, limits }: Pick<PageRoutes, 'deps' | 'limits'>) {
  const { db, now, publicUrl, sessionKey, random } = deps;

  /** Answers, and returns null, for an unknown link. */
  const find = async (ctx: Context): Promise<OpenedPortal | null> => {
    const token = pathParam(ctx, 'token');
    const found = await limits.lookUp(ctx, async () =>
      isToken(token) ? findPortalSession(db, hashToken(token)) : null,
    );
    const language = languageFor(ctx);
    if (found === null) sendPage(deps, ctx, unknownPage(language));
    else ctx.state.pageMerchant = found.merchant;
    return found && { ...found, language, home: portalPath(token) };
  };

  const browserOf = (ctx: Context): string | null => {
    const browser = ctx.cookies.get(COOKIE) ?? '';
    return isToken(browser) ? browser : null;
  };

  /** Returns the id of a browser that has none yet. */
  const newBrowser = (ctx: Context, { session, home }: OpenedPortal): string => {
    const value = randomToken(random);
    const lifetimeMs = Math.max(0, session.expiresAt - now());
    setCookie(ctx, publicUrl, { name: COOKIE, value, path: home, lifetimeMs });
    return value;
  };

  const refuse = (ctx: Context, { language, home }: OpenedPortal): null => {
    sendPage(deps, ctx, foreignFormPage(language, home));
    return null;
  };

  /** Answers, and returns null, unless this browser has the session. */
  const open = async (ctx: Context): Promise<OpenedPortal | null> => {
    const found = await find(ctx);
    if (found === null) return null;
    const { session, merchant, language, home } = found;
    const { say } = language;
    const { name } = merchant;
    const isLive = session.expiresAt > now();
    const browser = browserOf(ctx);
    const isOwner = browser !== null && session.browserHash?.equals(hashToken(browser));
    if (isLive && isOwner) return found;
    const isUnused = isLive && session.browserHash === null;
    // Before the button, so that a second click is of the same browser.
    if (isUnused && browser === null) newBrowser(ctx, found);
    const expired = { title: say('expiredTitle'), texts: [say('askMerchant', { name })] };
    const page = isUnused
      ? confirmPage({ sessionKey, language }, 200, session.id, {
          title: say('portalTitle', { name }),
          text: say('portalOpensHere', { time: language.time(session.expiresAt) }),
          button: say('continue'),
          action: home,
        })
      : endPage(language, 410, expired, { name, url: session.returnUrl });
    sendPage(deps, ctx, page);
    return null;
  };

  return {
    open,
    /** As `open`, for one of our forms. */
    openForm: async (ctx: Context): Promise<OpenedPortal | null> => {
      const form = await readForm(ctx);
      const opened = await open(ctx);
      return opened === null || isOwnForm(deps, ctx, form, opened.session.id)
        ? opened
        : refuse(ctx, opened);
    },
    /** Gives the session to the browser that pressed the button. A preview of the link presses none. */
    take: async (ctx: Context): Promise<OpenedPortal | null> => {
      const form = await readForm(ctx);
      const found = await find(ctx);
      if (found === null) return null;
      if (!isOwnForm(deps, ctx, form, found.session.id)) return refuse(ctx, found);
      const browser = browserOf(ctx) ?? newBrowser(ctx, found);
      await claimPortalSession(db, found.session, hashToken(browser), now());
      return found;
    },
  };
}
