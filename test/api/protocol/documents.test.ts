import { createHash } from 'node:crypto';
import { describe, expect } from 'vitest';
import { PUBLIC_URL, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { expectError } from '../../support/answers.ts';

const visit = (api: ApiEnvironment, path: string, headers: Record<string, string> = {}) =>
  api.call('GET', path, { as: null, headers });

const PAGE_FILES = ['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/start.js'];

describe('GET /openapi.json', () => {
  test('serves the OpenAPI document without credentials, with this API’s address [D-§7]', async ({
    api,
  }) => {
    const answer = await visit(api, '/openapi.json');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Perennial', version: '1.0.0' },
      servers: [{ url: PUBLIC_URL }],
    });
  });

  test('answers 304 to a client that sends the current ETag [D-§7]', async ({ api }) => {
    const { headers } = await visit(api, '/openapi.json');
    expect(headers['cache-control']).toBe('public, no-cache');
    const etag = String(headers['etag']);
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const unchanged = await visit(api, '/openapi.json', { 'if-none-match': etag });
    expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    const changed = await visit(api, '/openapi.json', { 'if-none-match': '"another"' });
    expect(changed.status).toBe(200);
  });
});

describe('GET /', () => {
  const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };

  test('is a page with links for a browser, and JSON for a program [D-§7]', async ({ api }) => {
    const page = await visit(api, '/', BROWSER);
    expect([page.status, page.headers['content-type'], page.headers['vary']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'Accept',
    ]);
    expect(
      [...page.text.matchAll(/<a href="([^"]*)">([^<]*)</g)].map(([, ...link]) => link),
    ).toEqual([
      ['/docs', 'API documentation'],
      ['/openapi.json', 'OpenAPI document'],
      ['https://temporal.example/ui?a=1&amp;b=2', 'Temporal Web UI'],
    ]);
    for (const accept of ['*/*', 'application/json']) {
      const answer = await visit(api, '/', { accept });
      expect([answer.status, answer.headers['content-type'], answer.json]).toEqual([
        200,
        'application/json; charset=utf-8',
        { service: 'Perennial', openapi: '/openapi.json', documentation: '/docs' },
      ]);
    }
  });

  test('allows no script and no style but the style of the page [D-§7]', async ({ api }) => {
    const { headers, text } = await visit(api, '/', BROWSER);
    const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(String(headers['content-security-policy']).split('; ')).toEqual([
      "default-src 'none'",
      `style-src 'sha256-${hash}'`,
      'img-src data:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });
});

describe('the API documentation at /docs', () => {
  test('is a page that loads files of this server only [D-§7]', async ({ api }) => {
    const page = await visit(api, '/docs');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    const named = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => String(url));
    expect(new Set(named)).toEqual(new Set([...PAGE_FILES, '/openapi.json', 'data:,']));
  });

  test('has a content security policy that allows no other server [D-§7]', async ({ api }) => {
    const { headers } = await visit(api, '/docs');
    expect(String(headers['content-security-policy']).split('; ')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  test.for<[string, string, string]>([
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8', '.swagger-ui'],
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', 'SwaggerUIBundle'],
    ['/docs/start.js', 'text/javascript; charset=utf-8', "url: '/openapi.json'"],
  ])('serves %s from this server [D-§7]', async ([path, type, content], { api }) => {
    const file = await visit(api, path);
    expect([file.status, file.headers['content-type']]).toEqual([200, type]);
    expect(file.text).toContain(content);
    const etag = String(file.headers['etag']);
    expect((await visit(api, path, { 'if-none-match': etag })).status).toBe(304);
  });

  test('turns off the online validator of Swagger UI [D-§7]', async ({ api }) => {
    expect((await visit(api, '/docs/start.js')).text).toContain('validatorUrl: null');
  });

  test('serves no other file of Swagger UI', async ({ api }) => {
    const answer = await visit(api, '/docs/index.html');
    expectError(answer, 404, 'route_not_found', 'There is no GET /docs/index.html.');
  });
});
