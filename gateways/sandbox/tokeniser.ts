import { randomBytes } from 'node:crypto';
import { readCard } from './card-form.ts';
import type { CardBook } from './card-book.ts';
import { expectContentType, readText, RequestRefused } from '../http-server/http.ts';
import type { Call, GatewayAnswer, Route } from '../http-server/http.ts';

const FORM_LIMIT_BYTES = 8_192;

const SESSION_LIMIT = 255;
const RETURN_URL_LIMIT = 2_048;

const ERROR_ID_BYTES = 9;

export interface TokeniserOptions {
  readonly cards: CardBook;
  /** Read at every request, so that the caller may add origins later. */
  readonly allowedReturnOrigins: readonly string[];
  readonly now: () => number;
}

/**
 * The only route that gets a card number, in memory, for one request. Redirects to `return_url` with `payment_token`
 * or `payment_error`, or after typing errors with `mistyped`: their names, without a value. No log contains a field.
 */
export function tokeniserRoute(options: TokeniserOptions): Route {
  return {
    method: 'POST',
    path: '/tokenise',
    access: 'public',
    handle: async (call) => {
      try {
        return await tokenise(call, options);
      } catch (error) {
        if (error instanceof RequestRefused) return refusalPage(error);
        throw error;
      }
    },
  };
}

async function tokenise({ request }: Call, options: TokeniserOptions): Promise<GatewayAnswer> {
  expectContentType(request, 'application/x-www-form-urlencoded');
  const form = new URLSearchParams(await readText(request, FORM_LIMIT_BYTES));
  const returnUrl = readReturnUrl(form.get('return_url') ?? '', options.allowedReturnOrigins);
  const session = form.get('session') ?? '';
  if (session === '' || session.length > SESSION_LIMIT) {
    throw new RequestRefused(400, 'session_invalid', 'The form names no checkout session.');
  }

  const now = options.now();
  const read = readCard(
    {
      number: form.get('number') ?? '',
      expiry: form.get('expiry') ?? '',
      cvc: form.get('cvc') ?? '',
    },
    now,
  );
  if (read.kind === 'mistyped') {
    return sendBack(returnUrl, { mistyped: Object.values(read.mistypes).join() });
  }
  if (read.kind === 'refused') {
    const id = randomBytes(ERROR_ID_BYTES).toString('base64url');
    return sendBack(returnUrl, { payment_error: read.code, payment_error_id: id });
  }
  return sendBack(returnUrl, { payment_token: await options.cards.issueToken(read, session, now) });
}

/** Refuses a URL of an origin that is not allowed. A redirect to any URL would be an open redirect. */
function readReturnUrl(value: string, allowedOrigins: readonly string[]): URL {
  const url = value.length <= RETURN_URL_LIMIT && URL.canParse(value) ? new URL(value) : null;
  if (
    url === null ||
    url.username !== '' ||
    url.password !== '' ||
    !allowedOrigins.some((allowed) => new URL(allowed).origin === url.origin)
  ) {
    throw new RequestRefused(
      400,
      'return_url_invalid',
      'The form does not lead back to an allowed site.',
    );
  }
  return url;
}

function sendBack(
  returnUrl: URL,
  result:
    | { payment_token: string }
    | { payment_error: string; payment_error_id: string }
    | { mistyped: string },
): GatewayAnswer {
  for (const name of ['payment_token', 'payment_error', 'payment_error_id', 'mistyped']) {
    returnUrl.searchParams.delete(name);
  }
  for (const [name, value] of Object.entries(result)) returnUrl.searchParams.set(name, value);
  return { status: 303, headers: { location: returnUrl.href }, body: '' };
}

/** The page shows no part of the request, which may contain card data. */
function refusalPage(error: RequestRefused): GatewayAnswer {
  return {
    status: error.status,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body:
      '<!doctype html><html lang="en"><meta charset="utf-8"><title>Card not accepted</title>' +
      `<h1>Card not accepted</h1><p>${error.message}</p>` +
      '<p>Nothing was charged and nothing was stored. Go back and try again.</p></html>\n',
  };
}
