/** Only for tests: in production the payer's own browser opens the hosted pages. */

const TYPED: Readonly<Record<string, string>> = {
  name: 'Ada Example',
  email: 'ada@example.com',
  number: '4242 4242 4242 4242',
  expiry: '12 / 34',
  cvc: '123',
};

/** Opens a hosted page, and fills in its forms until there is none. Keeps cookies, follows redirects. */
export async function payAt(url: string): Promise<void> {
  const cookies = new Map<string, string>();
  let page = await load(url, cookies);
  for (let forms = 0; forms < 5; forms += 1) {
    const form = /<form[^>]* action="([^"]*)".*?<\/form>/s.exec(page.html);
    if (form === null) return;
    const inputs = [...form[0].matchAll(/<input[^>]*>/g)].map(([input]) => input);
    const fields = inputs.map((input): [string, string] => {
      const name = attribute(input, 'name');
      return [name, TYPED[name] ?? attribute(input, 'value')];
    });
    const action = new URL(plain(form[1] ?? ''), page.url).href;
    page = await load(action, cookies, new URLSearchParams(fields));
  }
  throw new Error(`${url} still shows a form`);
}

async function load(url: string, cookies: Map<string, string>, body?: URLSearchParams) {
  for (let redirects = 0; redirects < 10; redirects += 1) {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(body && { method: 'POST', body }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (location === null) return { url, html: await answer.text() };
    // A redirect after a form is a GET.
    url = new URL(location, url).href;
    body = undefined;
  }
  throw new Error(`${url} redirects without end`);
}

function attribute(tag: string, name: string): string {
  return plain(new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '');
}

const plain = (text: string): string => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
