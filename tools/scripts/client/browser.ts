import { parse } from 'node-html-parser';
import type { HTMLElement } from 'node-html-parser';
import { CookieJar } from 'tough-cookie';

/**
 * A page in a simple headless browser. The browser opens pages, fills in forms by label, submits them,
 * follows redirects, and applies the page's `form-action` policy as Chromium does.
 */
export type Page = ReturnType<typeof readPage>;
export type Form = ReturnType<typeof readForm>;

/** The state of a browser: its cookies and its IP address. */
export class Browser {
  /** Sent as `X-Forwarded-For`. Without it the site sees this machine's address. */
  readonly address: string | undefined;
  private readonly jar = new CookieJar();

  constructor(address?: string) {
    this.address = address;
  }

  /** Ignores a cookie that the site may not set, as a browser does. */
  keepCookies(url: URL, setCookies: readonly string[]): void {
    for (const line of setCookies) this.jar.setCookieSync(line, url.href, { ignoreError: true });
  }

  headersFor(url: URL): Record<string, string> {
    const cookie = this.jar.getCookieStringSync(url.href);
    return {
      accept: 'text/html',
      ...(cookie === '' ? {} : { cookie }),
      ...(this.address === undefined ? {} : { 'x-forwarded-for': this.address }),
    };
  }
}

/** Longer than the slowest answer of a hosted page. */
const ANSWER_WITHIN_MS = 45_000;
const REDIRECTS_MOST = 10;

/** The request to `url` got no answer. A reload repeats the request. */
export class PageOutOfReach extends Error {
  override readonly name = 'PageOutOfReach';
  readonly url: string;
  readonly method: string;

  constructor(url: string, method: string, cause: unknown) {
    super(`${method} ${url} was not answered`, { cause });
    this.url = url;
    this.method = method;
  }
}

/**
 * Opens a URL in the given browser or in a new one.
 *
 * @throws PageOutOfReach when a server cannot be reached, closes the connection, or does not answer for 45 s.
 */
export function openPage(url: string, browser = new Browser()): Promise<Page> {
  return navigate(new URL(url), { method: 'GET' }, browser, () => true);
}

/**
 * Submits a form with `values` by label. Other fields keep the page's value.
 *
 * @throws Error for an unknown label, an empty required field, and a target that the page's policy
 * forbids; PageOutOfReach as {@link openPage}.
 */
export function submitForm(
  page: Page,
  form: Form,
  values: Readonly<Record<string, string>>,
): Promise<Page> {
  for (const label of Object.keys(values)) {
    if (!form.fields.some((field) => field.label === label)) {
      throw new Error(`${page.url} has no field "${label}"`);
    }
  }
  const body = new URLSearchParams();
  for (const field of form.fields) {
    const value = values[field.label] ?? field.value;
    if (field.isRequired && value === '') throw new Error(`"${field.label}" is required`);
    body.append(field.name, value);
  }
  const action = new URL(form.action);
  if (form.method === 'get') {
    action.search = body.toString();
    return navigate(action, { method: 'GET' }, page.browser, allowedBy(page));
  }
  return navigate(action, { method: 'POST', body }, page.browser, allowedBy(page));
}

/** Returns a function that tells whether the page's `form-action` allows a target, also that of a redirect. */
function allowedBy(page: Page): (url: URL) => boolean {
  const directive = /(?:^|;)\s*form-action\s+([^;]*)/.exec(page.policy)?.[1];
  if (directive === undefined) return () => true;
  const origins = directive
    .trim()
    .split(/\s+/)
    .map((source) => (source === "'self'" ? new URL(page.url).origin : source));
  return (url) => origins.includes(url.origin);
}

type Request = { method: 'GET' } | { method: 'POST'; body: URLSearchParams };

async function navigate(
  start: URL,
  first: Request,
  browser: Browser,
  isAllowed: (url: URL) => boolean,
): Promise<Page> {
  let url = start;
  let request = first;
  for (let redirects = 0; redirects <= REDIRECTS_MOST; redirects += 1) {
    if (!isAllowed(url))
      throw new Error(`the page's policy forbids its form to go to ${url.origin}`);
    const { response, html } = await ask(url, request, browser);
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) {
      return readPage(url.href, response, html, browser);
    }
    url = new URL(location, url);
    if (response.status !== 307 && response.status !== 308) request = { method: 'GET' };
  }
  throw new Error(`${start.href} redirects without end`);
}

async function ask(
  url: URL,
  request: Request,
  browser: Browser,
): Promise<{ response: Response; html: string }> {
  try {
    const response = await fetch(url, {
      ...request,
      redirect: 'manual',
      headers: browser.headersFor(url),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    browser.keepCookies(url, response.headers.getSetCookie());
    return { response, html: await response.text() };
  } catch (error) {
    throw new PageOutOfReach(url.href, request.method, error);
  }
}

function readPage(url: string, response: Response, html: string, browser: Browser) {
  // This browser runs no JavaScript, so it reads the content of `noscript` as part of the page.
  const root = parse(html, { blockTextElements: { script: true, style: true, pre: true } });
  const refresh = root.querySelector('meta[http-equiv="refresh"]')?.getAttribute('content') ?? '';
  const target = /url=(.*)$/i.exec(refresh)?.[1];
  return {
    url,
    status: response.status,
    html,
    /** Without the merchant's name, which follows on each page. */
    title: (textOf(root.querySelector('title')) ?? '').replace(/ · [^·]*$/, ''),
    /** The text of the element with `role="alert"`, or null. */
    alert: textOf(root.querySelector('[role="alert"]')),
    /** The absolute target of the page's automatic redirect, or null. */
    refreshUrl: target === undefined ? null : new URL(target, url).href,
    links: root.querySelectorAll('a').map((link) => ({
      text: textOf(link) ?? '',
      url: new URL(link.getAttribute('href') ?? '', url).href,
    })),
    forms: root.querySelectorAll('form').map((form) => readForm(url, form)),
    /** The `Content-Security-Policy` header, or "". */
    policy: response.headers.get('content-security-policy') ?? '',
    /** The browser that shows the page. */
    browser,
  };
}

function readForm(pageUrl: string, form: HTMLElement) {
  const labels = new Map(
    form.querySelectorAll('label').map((label) => [label.getAttribute('for'), textOf(label)]),
  );
  const button = form.querySelector('button');
  // A form is submitted by its first button. A browser sends this button, too.
  const inputs = form
    .querySelectorAll('input')
    .filter((it) => it.getAttribute('type') !== 'radio' || it.hasAttribute('checked'));
  const sent = [...inputs, ...(button === null ? [] : [button])];
  const fields = sent.map((input) => ({
    name: input.getAttribute('name') ?? '',
    label: labels.get(input.getAttribute('id')) ?? '',
    value: input.getAttribute('value') ?? '',
    isRequired: input.hasAttribute('required'),
  }));
  return {
    method: (form.getAttribute('method') ?? 'get').toLowerCase(),
    /** An absolute URL. */
    action: new URL(form.getAttribute('action') ?? '', pageUrl).href,
    fields: fields.filter((field) => field.name !== ''),
    /** The text of the submit button. */
    button: textOf(button) ?? '',
  };
}

function textOf(element: HTMLElement | null): string | null {
  return element && element.text.replaceAll(/\s+/g, ' ').trim();
}
