import type { Link } from '../../../db/repositories/subscriptions/links.ts';
import type { Language } from '../parts/language.ts';
import { detailsFields, detailsTitle, noGatewayPage } from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { hasProblem, missingDetails } from '../shared/details-form.ts';
import type { DetailName, TypedDetails } from '../shared/details-form.ts';
import { formToken } from '../shared/own-requests.ts';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { goodsOf } from './goods.ts';
import { Columns, DetailsInput, SaleSummary } from '../shared/views.tsx';
import type { DetailsField, Sale } from '../shared/views.tsx';

type Deps = Pick<PageDeps, 'sessionKey' | 'gateway' | 'language'>;

/**
 * Returns the page with the offer and a form for the payer's missing details. `visit`: the random id of this browser
 * on this link (`visit.ts`).
 */
export function linkPage(
  deps: Deps,
  link: Link,
  visit: string,
  typed: TypedDetails,
  nowAt: number,
): Page {
  const { code } = link.template;
  const { language } = deps;
  const sale = goodsOf(link).sale(deps, nowAt);
  if (deps.gateway === null) return noGatewayPage(sale);
  const form = {
    action: linkPath(code),
    visit,
    formToken: visitFormToken(deps, code, visit),
    fields: detailsFields(language, missingOf(link), typed),
  };
  return {
    language,
    status: hasProblem(typed) ? 400 : 200,
    title: detailsTitle(sale, typed),
    content: <LinkView sale={sale} form={form} />,
  };
}

export function missingOf({ template, savedDetails }: Link): DetailName[] {
  return missingDetails({ ...template, savedDetails });
}

/** Returns the same page for unknown, expired and used-up links, so that the page reveals no valid codes. */
export function gonePage(language: Language): Page {
  const { say } = language;
  return notice(language, 410, say('linkGoneTitle'), [say('linkGone'), say('askSender')]);
}

/** Returns the page for a client address that has taken too many uses of the link. */
export function busyPage(language: Language): Page {
  return notice(language, 429, language.say('linkBusyTitle'), [language.say('linkBusy')]);
}

export function foreignFormPage(language: Language, code: string): Page {
  const link = { href: linkPath(code), text: language.say('openLink') };
  const texts = [language.say('openLinkAgain')];
  return notice(language, 403, language.say('foreignFormTitle'), texts, link);
}

function linkPath(code: string): string {
  return `/l/${code}`;
}

/** Returns the hidden form token, which proves that the page of this visit sent the form. */
export function visitFormToken(
  { sessionKey }: Pick<Deps, 'sessionKey'>,
  code: string,
  visit: string,
): string {
  return formToken(sessionKey, `${code}:${visit}`);
}

interface LinkForm {
  readonly action: string;
  readonly visit: string;
  readonly formToken: string;
  readonly fields: readonly DetailsField[];
}

function LinkView({ sale, form }: { sale: Sale; form: LinkForm }) {
  return (
    <Columns summary={<SaleSummary sale={sale} />}>
      <section class="card">
        {form.fields.length > 0 && <h2>{sale.language.say('yourDetails')}</h2>}
        <form method="post" action={form.action}>
          <input type="hidden" name="form_token" value={form.formToken} />
          <input type="hidden" name="visit" value={form.visit} />
          {form.fields.map((field) => (
            <DetailsInput field={field} />
          ))}
          <button type="submit">{sale.language.say('continue')}</button>
        </form>
      </section>
    </Columns>
  );
}
