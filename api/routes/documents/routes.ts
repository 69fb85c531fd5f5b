import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Router } from '@koa/router';
import { z } from 'zod';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { createDocument } from '../../openapi/document.ts';
import type { Operation } from '../../openapi/operation.ts';
import { HOME_STYLE, homePage, DOCS_PAGE, DOCS_POLICY, DOCS_SCRIPT } from './pages.ts';

export const readDocument: Operation = {
  operationId: 'getDocument',
  method: 'get',
  path: '/openapi.json',
  tag: 'Document',
  summary: 'Read this document',
  description: 'OpenAPI 3.1. `/docs` shows the document as a web page.',
  isExtension: true,
  isOpen: true,
  isCacheable: true,
  answer: {
    description: 'The document.',
    schema: z.looseObject({ openapi: z.literal('3.1.0') }),
    examples: [{ summary: 'The beginning', value: { openapi: '3.1.0' } }],
  },
};

const require = createRequire(import.meta.url);

/** Files that the documentation page loads. This server serves them from its npm packages. */
const ASSETS = {
  'swagger-ui.css': { type: 'text/css', file: require.resolve('swagger-ui-dist/swagger-ui.css') },
  'swagger-ui-bundle.js': {
    type: 'text/javascript',
    file: require.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
};

/**
 * Registers the OpenAPI document, a page that shows it, and `/`, without credentials. `/` answers browsers with a
 * page and programs with JSON. The pages load nothing from other servers.
 */
export function documentRoutes(
  router: Router<RequestState>,
  { publicUrl, testCards, homeLinks }: Pick<ApiDeps, 'publicUrl' | 'testCards' | 'homeLinks'>,
  operations: readonly Operation[],
): void {
  // The document is built at the first request for it, because most processes that load this file never get
  // such a request.
  const document = once(async () => {
    return bytesOf(JSON.stringify(createDocument(operations, { publicUrl, testCards })));
  });
  router.get('/openapi.json', async (ctx) => {
    sendCacheable(ctx, 'application/json', await document());
  });

  const home = once(async () => bytesOf(homePage(homeLinks)));
  router.get('/', async (ctx) => {
    ctx.vary('Accept');
    if (ctx.accepts('json', 'html') === 'html') {
      ctx.set('Content-Security-Policy', HOME_POLICY);
      sendCacheable(ctx, 'text/html', await home());
    } else sendCacheable(ctx, 'application/json', HOME_OF_PROGRAMS);
  });

  const page = once(async () => bytesOf(DOCS_PAGE));
  router.get('/docs', async (ctx) => {
    ctx.set('Content-Security-Policy', DOCS_POLICY);
    sendCacheable(ctx, 'text/html', await page());
  });

  const script = once(async () => bytesOf(DOCS_SCRIPT));
  router.get('/docs/start.js', async (ctx) => {
    sendCacheable(ctx, 'text/javascript', await script());
  });

  for (const [name, { type, file }] of Object.entries(ASSETS)) {
    const asset = once(async () => bytesOf(await readFile(file)));
    router.get(`/docs/${name}`, async (ctx) => sendCacheable(ctx, type, await asset()));
  }
}

const HOME_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(HOME_STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The answer of `/` to a program, with the addresses of the OpenAPI document and of its page. */
const HOME_OF_PROGRAMS = bytesOf(
  JSON.stringify({ service: 'Perennial', openapi: '/openapi.json', documentation: '/docs' }),
);

interface Bytes {
  readonly body: Buffer;
  readonly etag: string;
}

function bytesOf(content: string | Buffer): Bytes {
  const body = Buffer.from(content);
  const hash = createHash('sha256').update(body).digest('base64url');
  return { body, etag: `"${hash}"` };
}

/** Sends content that changes only with a release. A client caches it and revalidates by `ETag`. */
function sendCacheable(ctx: Context, type: string, { body, etag }: Bytes): void {
  ctx.set('Cache-Control', 'public, no-cache');
  ctx.set('ETag', etag);
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = type;
  ctx.body = body;
}

/** Runs `work` at the first call and caches its result. After a failure the next call runs `work` again. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined;
      throw error;
    });
    return result;
  };
}
