import { pathParam } from '../../context.ts';
import type { Context } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import type { CardPages, CardSubject } from './card-page-kind.ts';
import { foreignFormPage } from './card-page.tsx';
import { languageFor, sendPage } from './page.tsx';
import { isPrefetch } from './limits.ts';
import type { PageLimits } from './limits.ts';
import { formToken, isOwnForm, readForm } from './own-requests.ts';

export type PageOpener<Subject> = ReturnType<typeof createOpener<Subject & CardSubject>>;

export function createOpener<Subject extends CardSubject>(
  deps: ApiDeps,
  limits: PageLimits,
  pages: Pick<CardPages<Subject>, 'pathOf' | 'find' | 'unknown'>,
) {
  /** Returns the subject of the path's token. For an unknown token, answers and returns a null subject. */
  const open = async (ctx: Context) => {
    const token = pathParam(ctx, 'token');
    const subject = await limits.lookUp(ctx, () => pages.find(token));
    const language = languageFor(ctx, subject?.locale);
    ctx.state.pageBranding = subject?.merchantSettings.branding ?? {};
    if (subject === null) sendPage(deps, ctx, pages.unknown(language));
    return { token, subject, home: pages.pathOf(token), language };
  };

  /** Reads a form of our own page. For an unknown token or a foreign form, answers and returns null. */
  const openForm = async (ctx: Context) => {
    const form = await readForm(ctx);
    const { token, subject, home, language } = await open(ctx);
    if (subject === null) return null;
    const expected = { ...deps, token: formToken(deps.sessionKey, subject.sessionId) };
    const isOwn = isOwnForm(ctx, expected, form.get('form_token') ?? '');
    if (isOwn) return { token, subject, home, language, form };
    sendPage(deps, ctx, foreignFormPage(language, home));
    return null;
  };

  return { open, openForm };
}

/** True for HEAD and prefetch requests, which do not count as an opening of the page. */
export function isPreview(ctx: Context): boolean {
  return ctx.method === 'HEAD' || isPrefetch(ctx);
}
