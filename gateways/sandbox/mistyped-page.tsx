import { LOCALES } from '../../domain/locales.ts';
import { CardForm } from '../../api/pages/parts/card-form.tsx';
import type { CardFormContext } from '../../api/pages/parts/card-form.tsx';
import { languageOf } from '../../api/pages/parts/language.ts';
import { renderPage } from '../../api/pages/parts/layout.tsx';
import { CARD_SCRIPT } from '../../api/pages/parts/scripts.ts';
import type { GatewayAnswer } from '../http-server/http.ts';
import type { Mistypes } from './card-form.ts';

/** Longest text of a hidden field that the page shows, in characters. */
const SHOWN_TEXT_MAX = 255;

/** Returns the hidden fields of a submitted card form. An unknown locale becomes English. */
function contextOf(form: URLSearchParams): CardFormContext {
  const text = (name: string): string => form.get(name) ?? '';
  return {
    session: text('session'),
    return_url: text('return_url'),
    locale: LOCALES.find((locale) => locale === text('locale')) ?? 'en',
    merchant: text('merchant').slice(0, SHOWN_TEXT_MAX),
    button: text('button').slice(0, SHOWN_TEXT_MAX),
  };
}

/** The form again, without the CVC. Its texts are not signed, but it leads only here and to an allowed origin. */
export function mistypedPage(
  form: URLSearchParams,
  mistypes: Mistypes,
  { returnUrl, nonce }: { returnUrl: URL; nonce: string },
): GatewayAnswer {
  const context = contextOf(form);
  const language = languageOf(LOCALES.find((locale) => locale === context.locale) ?? 'en');
  const { say } = language;
  const problems = Object.fromEntries(
    Object.entries(mistypes).map(([field, text]) => [field, say(text)]),
  );
  const typed = {
    name: form.get('name') ?? '',
    number: form.get('number') ?? '',
    expiry: form.get('expiry') ?? '',
  };
  const title = say('checkCard');
  const children = (
    <section class="card">
      <p class="from" dir="auto">
        {context.merchant}
      </p>
      <h1>{title}</h1>
      <p class="bad" role="alert">
        {say('correctFields')}
      </p>
      <CardForm
        language={language}
        action="/tokenise"
        context={{ ...context, button: context.button || say('continue') }}
        typed={typed}
        problems={problems}
      />
      <p class="leave">
        <a href={returnUrl.href}>{say('startOver')}</a>
      </p>
    </section>
  );
  return {
    status: 422,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': [
        "default-src 'none'",
        `style-src 'nonce-${nonce}'`,
        `script-src ${CARD_SCRIPT.source}`,
        // Chromium applies `form-action` also to the redirect to the return URL.
        `form-action 'self' ${returnUrl.origin}`,
        "base-uri 'none'",
        "frame-ancestors 'none'",
      ].join('; '),
    },
    body: renderPage({
      language,
      title: say('errorTitle', { title }),
      nonce,
      script: CARD_SCRIPT,
      children,
    }),
  };
}
