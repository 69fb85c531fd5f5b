import { requestPortal } from '../../../db/repositories/customers/portal-sessions.ts';
import type { PortalRequest } from '../../../db/repositories/customers/portal-sessions.ts';
import { isEventTaken } from '../../../db/repositories/webhooks/configs.ts';
import type { Language } from '../../../domain/language/language.ts';
import { payerPath, portalToken } from '../../../runtime/payer-links.ts';
import { outsideRequest } from '../../../runtime/request-scope.ts';
import type { ApiDeps } from '../../deps.ts';
import { causesOf } from '../../http/every-request.ts';
import type { PageMerchant } from '../../http/request.ts';
import { foreignFormPage } from '../shared/card-page.tsx';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { hasProblem, readDetails } from '../shared/details-form.ts';
import type { Typed } from '../shared/details-form.ts';
import { merchantOpener } from '../shared/merchant-page.ts';
import { formToken, isOwnForm, readForm } from '../shared/own-requests.ts';
import { asError, languageFor, notice, seeOther, sendPage } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { DetailsInput, OwnForm } from '../shared/views.tsx';

const PATH = payerPath(':merchant');
/** The query of the page after the form. */
const SENT = 'sent';

const tokenUse = (merchantId: string): string => `portal-request:${merchantId}`;

/**
 * Registers the page on which a payer asks for a link to their own page. Known and unknown addresses get one answer. The
 * page exists while an endpoint takes the event.
 */
export function portalRequestRoutes({ router, deps, limits }: PageRoutes): void {
  const { sessionKey } = deps;
  const open = merchantOpener({ deps, limits }, (merchantId) =>
    isEventTaken(deps.db, merchantId, 'customer.portal_requested'),
  );
  const formPage = (language: Language, merchant: PageMerchant, email: Typed): Page =>
    requestPage(language, merchant, formToken(sessionKey, tokenUse(merchant.id)), email);

  router.get(PATH, async (ctx) => {
    const merchant = await open(ctx);
    if (merchant === null) return;
    const language = languageFor(ctx);
    const isSent = ctx.querystring === SENT;
    const page = isSent
      ? sentPage(language, merchant.name)
      : formPage(language, merchant, { value: '', problem: null });
    sendPage(deps, ctx, page);
  });

  router.post(PATH, async (ctx) => {
    const given = await readForm(ctx);
    const merchant = await open(ctx);
    if (merchant === null) return;
    const language = languageFor(ctx);
    const here = payerPath(merchant.id);
    if (!isOwnForm(deps, ctx, given, tokenUse(merchant.id))) {
      return sendPage(deps, ctx, foreignFormPage(language, here));
    }
    const typed = readDetails(given, ['email']);
    const email = typed.get('email') ?? { value: '', problem: null };
    if (hasProblem(typed)) {
      const page = formPage(language, merchant, email);
      return sendPage(deps, ctx, { ...asError(page), status: 400 });
    }
    await limits.countPortalRequest(ctx, merchant.id);
    const { locale } = language;
    const request = { merchantId: merchant.id, email: email.value, locale, nowAt: deps.now() };
    ctx.res.once('close', () => void outsideRequest(() => sendLinks(deps, request)));
    seeOther(ctx, `${here}?${SENT}`);
  });
}

/** Never throws: a payer who gets no e-mail asks again. */
async function sendLinks(deps: ApiDeps, request: PortalRequest): Promise<void> {
  try {
    const stored = requestPortal(deps.db, request, (portal) => portalToken(deps, portal));
    for await (const stream of stored) await deps.webhooks.wakeStream(stream);
  } catch (error) {
    const { merchantId } = request;
    const causes = causesOf(error);
    deps.logger.warn({ merchantId, causes }, 'no link to the payer’s own page was sent');
  }
}

function requestPage(
  language: Language,
  { id, name }: PageMerchant,
  token: string,
  { value, problem }: Typed,
): Page {
  const { say } = language;
  const title = say('portalTitle', { name });
  const field = {
    name: 'email',
    label: say('email'),
    value,
    problem: problem && say(problem),
    hasFocus: problem !== null,
  } as const;
  const content = (
    <section class="card">
      <h1>{title}</h1>
      <p>{say('portalByMail', { name })}</p>
      <OwnForm action={payerPath(id)} formToken={token} button={say('continue')}>
        <DetailsInput field={field} />
      </OwnForm>
    </section>
  );
  return { language, status: 200, title, content };
}

function sentPage(language: Language, name: string): Page {
  const { say } = language;
  return notice(language, 200, say('portalTitle', { name }), [say('portalMailed', { name })]);
}
