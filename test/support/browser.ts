/**
 * A page in a simple headless browser. The browser opens pages, fills in forms by label, submits them,
 * follows redirects, and applies the page's `form-action` policy as Chromium does.
 */
export interface Page {
  readonly url: string;
  readonly status: number;
  readonly html: string;
  readonly title: string;
  /** The text of the element with `role="alert"`, or null. */
  readonly alert: string | null;
  /** The absolute target of the page's automatic redirect, or null. */
  readonly refreshUrl: string | null;
  readonly links: readonly { readonly text: string; readonly url: string }[];
  readonly forms: readonly Form[];
  /** The `Content-Security-Policy` header, or "". */
  readonly policy: string;
  /** The browser that shows the page. */
  readonly browser: Browser;
}

/** The state of a browser: its cookies and its IP address. */
export class Browser {
  /** Sent as `X-Forwarded-For`. Without it the site sees this machine's address. */
  readonly address: string | undefined;
  private readonly kept = new Map<string, { origin: string; path: string; pair: string }>();

  constructor(address?: string) {
    this.address = address;
  }

  keepCookies(url: URL, setCookies: readonly string[]): void {
    for (const line of setCookies) {
      const [pair = ''] = line.split(';');
      const path = /;\s*path=([^;]*)/i.exec(line)?.[1] ?? '/';
      const name = pair.split('=')[0] ?? '';
      this.kept.set(`${url.origin} ${path} ${name}`, { origin: url.origin, path, pair });
    }
  }

  headersFor({ origin, pathname }: URL): Record<string, string> {
    const sent = [...this.kept.values()].filter(
      (cookie) => cookie.origin === origin && pathname.startsWith(cookie.path),
    );
    return {
      accept: 'text/html',
      ...(sent.length === 0 ? {} : { cookie: sent.map(({ pair }) => pair).join('; ') }),
      ...(this.address === undefined ? {} : { 'x-forwarded-for': this.address }),
    };
  }
}

export interface Form {
  readonly method: string;
  /** An absolute URL. */
  readonly action: string;
  readonly fields: readonly Field[];
  /** The text of the submit button. */
  readonly button: string;
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly isHidden: boolean;
  readonly isRequired: boolean;
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
 * @throws PageOutOfReach when a server cannot be reached or closes the connection.
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

/** The targets that the page's `form-action` allows, also for redirects. */
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

function readPage(url: string, response: Response, html: string, browser: Browser): Page {
  const [refresh] = tags(html, 'meta').filter((tag) => tag['http-equiv'] === 'refresh');
  const target = /url=(.*)$/i.exec(refresh?.['content'] ?? '')?.[1];
  return {
    url,
    status: response.status,
    html,
    title: textOf(/<title>(.*?)<\/title>/s.exec(html)?.[1] ?? ''),
    alert: innerOf(html, /<(\w+)[^>]*\srole="alert"[^>]*>(.*?)<\/\1>/s, 2),
    refreshUrl: target === undefined ? null : new URL(target, url).href,
    links: [...html.matchAll(/<a\s([^>]*)>(.*?)<\/a>/gs)].map(([, attributes, inner]) => ({
      text: textOf(inner ?? ''),
      url: new URL(attributesOf(attributes ?? '')['href'] ?? '', url).href,
    })),
    forms: [...html.matchAll(/<form\s([^>]*)>(.*?)<\/form>/gs)].map(([, attributes, inner]) =>
      readForm(url, attributesOf(attributes ?? ''), inner ?? ''),
    ),
    policy: response.headers.get('content-security-policy') ?? '',
    browser,
  };
}

function readForm(pageUrl: string, attributes: Attributes, html: string): Form {
  const labels = new Map(
    [...html.matchAll(/<label\s([^>]*)>(.*?)<\/label>/gs)].map(([, label, inner]) => [
      attributesOf(label ?? '')['for'] ?? '',
      textOf(inner ?? ''),
    ]),
  );
  const fields = tags(html, 'input').map((input) => ({
    name: input['name'] ?? '',
    label: labels.get(input['id'] ?? '') ?? '',
    value: input['value'] ?? '',
    isHidden: input['type'] === 'hidden',
    isRequired: 'required' in input,
  }));
  return {
    method: (attributes['method'] ?? 'get').toLowerCase(),
    action: new URL(attributes['action'] ?? '', pageUrl).href,
    fields: fields.filter((field) => field.name !== ''),
    button: innerOf(html, /<button[^>]*>(.*?)<\/button>/s, 1) ?? '',
  };
}

type Attributes = Readonly<Record<string, string>>;

function tags(html: string, name: string): Attributes[] {
  const pattern = new RegExp(`<${name}\\s((?:[^>"']|"[^"]*"|'[^']*')*)>`, 'g');
  return [...html.matchAll(pattern)].map(([, attributes]) => attributesOf(attributes ?? ''));
}

function attributesOf(text: string): Attributes {
  const pattern = /([^\s=/"'>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;
  return Object.fromEntries(
    [...text.matchAll(pattern)].map(([, name = '', double, single, bare]) => [
      name.toLowerCase(),
      unescaped(double ?? single ?? bare ?? ''),
    ]),
  );
}

function innerOf(html: string, pattern: RegExp, group: number): string | null {
  const inner = pattern.exec(html)?.[group];
  return inner === undefined ? null : textOf(inner);
}

function textOf(html: string): string {
  return unescaped(html.replaceAll(/<[^>]*>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const ENTITIES: Attributes = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#39': "'" };

function unescaped(text: string): string {
  return text.replaceAll(/&(#?\w+);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
