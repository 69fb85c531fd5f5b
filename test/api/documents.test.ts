import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiWorld, PUBLIC_URL } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;
beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const visit = (path: string, headers: Record<string, string> = {}) =>
  world.call('GET', path, { as: null, headers });

const PAGE_FILES = ['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/start.js'];

describe('GET /openapi.json', () => {
  it('serves the OpenAPI document without credentials, with this API’s address [D-§7]', async () => {
    const answer = await visit('/openapi.json');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Perennial', version: '1.0.0' },
      servers: [{ url: PUBLIC_URL }],
    });
  });

  it('answers 304 to a client that sends the current ETag [D-§7]', async () => {
    const { headers } = await visit('/openapi.json');
    expect(headers['cache-control']).toBe('public, no-cache');
    const etag = String(headers['etag']);
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const unchanged = await visit('/openapi.json', { 'if-none-match': etag });
    expect([unchanged.status, unchanged.text]).toEqual([304, '']);
    const changed = await visit('/openapi.json', { 'if-none-match': '"another"' });
    expect(changed.status).toBe(200);
  });
});

describe('GET /docs', () => {
  it('is a page that loads files of this server only [D-§7]', async () => {
    const page = await visit('/docs');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    const named = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => String(url));
    expect(new Set(named)).toEqual(new Set([...PAGE_FILES, '/openapi.json', 'data:,']));
  });

  it('has a content security policy that allows no other server [D-§7]', async () => {
    const { headers } = await visit('/docs');
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

  it.each([
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8', '.swagger-ui'],
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', 'SwaggerUIBundle'],
    ['/docs/start.js', 'text/javascript; charset=utf-8', "url: '/openapi.json'"],
  ])('serves %s from this server [D-§7]', async (path, type, content) => {
    const file = await visit(path);
    expect([file.status, file.headers['content-type']]).toEqual([200, type]);
    expect(file.text).toContain(content);
    const etag = String(file.headers['etag']);
    expect((await visit(path, { 'if-none-match': etag })).status).toBe(304);
  });

  it('turns off the online validator of Swagger UI [D-§7]', async () => {
    expect((await visit('/docs/start.js')).text).toContain('validatorUrl: null');
  });

  it('serves no other file of Swagger UI', async () => {
    const answer = await visit('/docs/index.html');
    expect([answer.status, answer.json]).toEqual([
      404,
      { errorCode: 'route_not_found', errorDescription: 'There is no GET /docs/index.html.' },
    ]);
  });
});
