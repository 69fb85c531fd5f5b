import type { Link } from '../../../db/repositories/subscriptions/links.ts';
import { detailsFields, noGatewayPage } from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { missingDetails } from '../shared/details-form.ts';
import type { DetailName, TypedDetails } from '../shared/details-form.ts';
import { formToken } from '../shared/own-form.ts';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { goodsOf } from './goods.ts';
import { DetailsInput, SaleSummary } from '../shared/views.tsx';
import type { DetailsField, Sale } from '../shared/views.tsx';

type Deps = Pick<PageDeps, 'sessionKey' | 'gateway'>;

/** Returns the page with the offer and a form for the payer's missing details. Rules: IF-2.8, D-37. */
export function linkPage(
  deps: Deps,
  link: Link,
  visit: string,
  typed: TypedDetails,
  nowAt: number,
): Page {
  const { code } = link.template;
  const sale = goodsOf(link).sale(deps, nowAt);
  if (deps.gateway === null) return noGatewayPage(sale);
  const form = {
    action: linkPath(code),
    visit,
    formToken: visitFormToken(deps, code, visit),
    fields: detailsFields(missingOf(link), typed),
  };
  return {
    status: [...typed.values()].some(({ problem }) => problem !== null) ? 400 : 200,
    title: sale.productName,
    content: <LinkView sale={sale} form={form} />,
  };
}

/** Returns the details that the payer must type before a subscription or payment is created. Rule: D-11. */
export function missingOf({ template, savedDetails }: Link): DetailName[] {
  return missingDetails({ ...template, savedDetails });
}

/**
 * Returns the same page for unknown, expired and used-up links, so that the page reveals no valid codes.
 * Rule: D-37.
 */
export function gonePage(): Page {
  return notice(410, 'This link cannot be used', [
    'It is incomplete, it has expired, or it was used as often as it may be. Nothing was charged.',
    'Ask the sender for a new link.',
  ]);
}

/** The page for a client address that has taken too many uses of the link. Rule: D-37. */
export function busyPage(): Page {
  return notice(429, 'This link was begun too often from your network', [
    'Nothing was charged. Open the link again in ten minutes, or from another network.',
  ]);
}

/** The page for a form that another site sent. */
export function foreignFormPage(code: string): Page {
  return notice(
    403,
    'This form is not valid any more',
    ['Open the link again. Nothing was charged.'],
    { href: linkPath(code), text: 'Open the link' },
  );
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
    <>
      <SaleSummary sale={sale} />
      <section class="card">
        {form.fields.length > 0 && <h2>Your details</h2>}
        <form method="post" action={form.action}>
          <input type="hidden" name="form_token" value={form.formToken} />
          <input type="hidden" name="visit" value={form.visit} />
          {form.fields.map((field) => (
            <DetailsInput field={field} />
          ))}
          <button type="submit">Continue</button>
        </form>
      </section>
    </>
  );
}
