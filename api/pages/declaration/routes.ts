import {
  findDeclaration,
  insertDeclaration,
} from '../../../db/repositories/customers/declarations.ts';
import type { DeclarationRow } from '../../../db/repositories/customers/declarations.ts';
import { hashToken } from '../../../db/repositories/checkouts/sessions.ts';
import type { DeclarationKind } from '../../../domain/declaration.ts';
import { isToken, newId, randomToken, tokenFrom } from '../../../domain/ids.ts';
import { DECLARATION_PATHS, declarationPath } from '../../../runtime/payer-links.ts';
import { pathParam } from '../../http/request.ts';
import type { Context, PageMerchant } from '../../http/request.ts';
import { foreignFormPage, unknownPage } from '../shared/card-page.tsx';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { formToken, isOwnForm, readForm, sign } from '../shared/own-requests.ts';
import { merchantOpener } from '../shared/merchant-page.ts';
import { asError, languageFor, notice, seeOther, sendPage } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import type { Language } from '../../../domain/language/language.ts';
import { needsSummary } from '../../../domain/language/fixed-words.ts';
import { declaredIn, isComplete, readDeclaration } from './form.ts';
import { confirmationLines, confirmationTitle } from '../../../domain/language/declared-lines.ts';
import { DeclarationPage, declarationTitle, SummaryPage } from './views.tsx';
import type { FormProps } from './views.tsx';

const KINDS = Object.keys(DECLARATION_PATHS) as DeclarationKind[];

/** Registers the pages on which a payer cancels or withdraws without login. Known and unknown references get one answer. */
export function declarationRoutes({ router, deps, limits }: PageRoutes): void {
  const { db, random, sessionKey } = deps;

  const open = merchantOpener({ deps, limits });

  const propsOf = (
    ctx: Context,
    merchant: PageMerchant,
    kind: DeclarationKind,
    { visit, given }: { visit: string; given: URLSearchParams },
  ): FormProps => ({
    language: languageFor(ctx),
    kind,
    merchantName: merchant.name,
    action: declarationPath(kind, merchant.id),
    formToken: formToken(sessionKey, tokenUse(merchant.id, visit)),
    visit,
    form: readDeclaration(given, kind),
  });

  for (const kind of KINDS) {
    const path = declarationPath(kind, ':merchant');

    router.get(path, async (ctx) => {
      const merchant = await open(ctx);
      if (merchant === null) return;
      const given = new URLSearchParams(ctx.querystring);
      const props = propsOf(ctx, merchant, kind, { visit: randomToken(random), given });
      sendPage(deps, ctx, formPage(withoutProblems(props)));
    });

    router.post(path, async (ctx) => {
      const given = await readForm(ctx);
      const merchant = await open(ctx);
      if (merchant === null) return;
      const visit = given.get('visit');
      if (!isToken(visit) || !isOwnForm(deps, ctx, given, tokenUse(merchant.id, visit))) {
        const here = declarationPath(kind, merchant.id);
        return sendPage(deps, ctx, foreignFormPage(languageFor(ctx), here));
      }
      const props = propsOf(ctx, merchant, kind, { visit, given });
      if (given.has('change')) return sendPage(deps, ctx, formPage(props));
      if (!isComplete(props.form)) {
        return sendPage(deps, ctx, { ...asError(formPage(props)), status: 400 });
      }
      const { language } = props;
      if (needsSummary(language.locale, kind) && !given.has('checked')) {
        return sendPage(deps, ctx, summaryPage(props));
      }
      seeOther(ctx, await declare({ deps, limits }, ctx, merchant.id, props));
    });
  }

  router.get(confirmationPath(':merchant', ':token'), async (ctx) => {
    const merchant = await open(ctx);
    if (merchant === null) return;
    const token = pathParam(ctx, 'token');
    const declaration = await limits.lookUp(ctx, async () =>
      isToken(token) ? findDeclaration(db, merchant.id, hashToken(token)) : null,
    );
    if (declaration === null) return sendPage(deps, ctx, unknownPage(languageFor(ctx)));
    const language = languageFor(ctx, declaration.locale);
    const isCopy = ctx.querystring === DOWNLOAD;
    if (isCopy) ctx.set('Content-Disposition', `attachment; filename="${declaration.id}.html"`);
    const copy = isCopy ? null : `${confirmationPath(merchant.id, token)}?${DOWNLOAD}`;
    sendPage(deps, ctx, confirmationPage(language, merchant.name, declaration, copy));
  });
}

/** Stores the declaration. It is handled after the answer, whose time then does not tell whether the contract exists. */
async function declare(
  { deps, limits }: Pick<PageRoutes, 'deps' | 'limits'>,
  ctx: Context,
  merchantId: string,
  { kind, visit, form, language }: FormProps,
): Promise<string> {
  const { db, now, random, sessionKey } = deps;
  const declared = declaredIn(form);
  // Another declaration of the same form, after a step back, has another token.
  const said = `declared:${visit}:${JSON.stringify([kind, declared])}`;
  const token = tokenFrom(sign(sessionKey, said));
  const tokenHash = hashToken(token);
  const page = confirmationPath(merchantId, token);
  if (await findDeclaration(db, merchantId, tokenHash)) return page;
  await limits.countDeclaration(ctx, merchantId);
  const createdAt = now();
  const id = await insertDeclaration(db, {
    merchantId,
    id: newId('dcl', createdAt, random),
    tokenHash,
    kind,
    ...declared,
    locale: language.locale,
    createdAt,
  });
  ctx.res.once('close', () => deps.takeDeclaration({ merchantId, id }));
  return page;
}

const DOWNLOAD = 'download';

function confirmationPath(merchantId: string, token: string): string {
  return `/m/${merchantId}/declaration/${token}`;
}

function tokenUse(merchantId: string, visit: string): string {
  return `declaration:${merchantId}:${visit}`;
}

/** A form that was not sent yet has no wrong field. */
function withoutProblems({ form, ...props }: FormProps): FormProps {
  const fields = [...form.fields].map(
    ([name, { value }]) => [name, { value, problem: null }] as const,
  );
  const reason = { ...form.reason, problem: null };
  const endOn = { ...form.endOn, problem: null };
  return { ...props, form: { ...form, fields: new Map(fields), reason, endOn } };
}

function formPage(props: FormProps): Page {
  const { language, kind, merchantName } = props;
  const title = declarationTitle(language, kind, merchantName);
  return { language, status: 200, title, content: DeclarationPage(props) };
}

function summaryPage(props: FormProps): Page {
  const { language } = props;
  const title = language.say('checkDeclaration');
  return { language, status: 200, title, content: SummaryPage(props) };
}

function confirmationPage(
  language: Language,
  name: string,
  declaration: DeclarationRow,
  copy: string | null,
): Page {
  const { say } = language;
  const title = confirmationTitle(language, declaration.kind);
  const rows = confirmationLines(language, declaration);
  const link = copy === null ? undefined : { href: copy, text: say('downloadConfirmation') };
  return notice(language, 200, title, [say('keepConfirmation', { name })], link, rows);
}
