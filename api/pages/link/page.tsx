import type { Link } from '../../../db/repositories/subscriptions/links.ts';
import type { Language } from '../parts/language.ts';
import { detailsFields, detailsTitle, noGatewayPage, saleOf } from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { missingDetails } from '../shared/details-form.ts';
import type { DetailName, TypedDetails } from '../shared/details-form.ts';
import { formToken } from '../shared/own-requests.ts';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { goodsOf } from './goods.ts';
import { DetailsPage } from '../shared/views.tsx';

type Deps = Pick<PageDeps, 'sessionKey' | 'gateway' | 'language'>;

/** `visit`: the random id of this browser on this link (`visit.ts`). */
export function linkPage(
  deps: Deps,
  link: Link,
  visit: string,
  typed: TypedDetails,
  nowAt: number,
): Page {
  const { code } = link.template;
  const { language } = deps;
  const sale = saleOf(deps, link.merchant.mode, goodsOf(link).sale(language, nowAt), null);
  if (deps.gateway === null) return noGatewayPage(sale);
  const form = {
    action: linkPath(code),
    visit,
    formToken: visitFormToken(deps, code, visit),
    fields: detailsFields(language, missingOf(link), typed),
    button: language.say('continue'),
  };
  return {
    language,
    status: 200,
    title: detailsTitle(sale, typed),
    content: <DetailsPage sale={sale} {...form} />,
  };
}

export function missingOf({ template, savedDetails }: Link): DetailName[] {
  return missingDetails({ ...template, savedDetails });
}

/** For an unknown, expired or used-up link. `link`: null if unknown. Its code of 71 random bits cannot be guessed. */
export function gonePage(language: Language, link: Link | null): Page {
  const { say } = language;
  const ask = link === null ? say('askSender') : say('askMerchant', { name: link.merchant.name });
  return notice(language, 410, say('linkGoneTitle'), [say('linkGone'), ask]);
}

export function busyPage(language: Language): Page {
  return notice(language, 429, language.say('linkBusyTitle'), [language.say('linkBusy')]);
}

export function linkPath(code: string): string {
  return `/l/${code}`;
}

export function visitFormToken(
  { sessionKey }: Pick<Deps, 'sessionKey'>,
  code: string,
  visit: string,
): string {
  return formToken(sessionKey, `${code}:${visit}`);
}
