import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Router } from '@koa/router';
import { z } from 'zod';
import type { Context, RequestState } from '../../http/request.ts';
import type { ApiDeps, HomeLink } from '../../deps.ts';
import { createDocument } from '../../openapi/document.ts';
import type { Operation } from '../../http/route.ts';
import { countBlockedAccounts } from '../../../db/repositories/merchants/account-blocks.ts';
import { requireWritable } from '../../../db/repositories/sweeps/figures.ts';
import { countHeld } from '../../../db/repositories/sweeps/queries.ts';
import { ok, send } from '../../http/request.ts';

const pageOf = (title: string, head: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
${head}
</head>
<body>
${body}
</body>
</html>
`;

const DOCS_PAGE = pageOf(
  'Perennial API',
  '<link rel="stylesheet" href="/docs/swagger-ui.css">',
  `<main id="ui"><noscript>This page needs JavaScript. <a href="/openapi.json">/openapi.json</a> has the same content as JSON.</noscript></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>`,
);

/** Because of `validatorUrl: null`, the page sends the document to no external validator. */
const DOCS_SCRIPT = `const sample = ({ React, specSelectors }, { pathMethod }) =>
  React.createElement('pre', { className: 'example microlight' },
    specSelectors.specJson().getIn(['paths', ...pathMethod, 'x-codeSamples', 0, 'source']));
const opsFilter = (groups, phrase) => {
  const has = (text = '') => text.toLowerCase().includes(phrase.trim().toLowerCase());
  const isFound = (item) =>
    [['path'], ['operation', 'summary'], ['operation', 'operationId']].some((at) => has(item.getIn(at)));
  return groups
    .map((group, tag) => has(tag) ? group : group.update('operations', (all) => all.filter(isFound)))
    .filter((group) => group.get('operations').size > 0);
};
const plugin = ({ React }) => ({
  fn: { opsFilter },
  wrapComponents: {
    parameters: (Original, system) => (props) =>
      React.createElement('div', null, sample(system, props), React.createElement(Original, props)),
    OperationExtRow: (Original) => (props) =>
      props.xKey === 'x-codeSamples' ? null : React.createElement(Original, props),
  },
});
SwaggerUIBundle({
  plugins: [plugin],
  filter: true,
  onComplete() {
    document.querySelector('.operation-filter-input').placeholder = 'Search by path, summary, operationId or tag';
  },
  url: '/openapi.json',
  domNode: document.getElementById('ui'),
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  showExtensions: true,
  persistAuthorization: false,
  validatorUrl: null,
});
`;

const policyOf = (...sources: string[]): string =>
  [
    "default-src 'none'",
    ...sources,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** The page loads only from this server. Swagger UI sets inline styles and has its icons in data URLs. */
const DOCS_POLICY = policyOf(
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
);

const OWN_LINKS: readonly HomeLink[] = [
  { url: '/docs', text: 'API documentation' },
  { url: '/openapi.json', text: 'OpenAPI document' },
];

const HOME_STYLE = `:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 36rem; padding: 3rem 1.25rem; font: 1rem/1.6 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
`;

function homePage(links: readonly HomeLink[]): string {
  const items = [...OWN_LINKS, ...links].map(
    ({ url, text }) => `<li><a href="${escaped(url)}">${escaped(text)}</a></li>`,
  );
  return pageOf(
    'Perennial',
    `<style>${HOME_STYLE}</style>`,
    `<main>
<h1>Perennial</h1>
<p>A payment and subscription-billing service. Merchants call its API with their credentials. Payers open links to
its hosted pages.</p>
<ul>
${items.join('\n')}
</ul>
</main>`,
  );
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

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
    examples: { 'The beginning': { openapi: '3.1.0' } },
  },
};

const require = createRequire(import.meta.url);

const ASSETS = {
  'swagger-ui.css': { type: 'text/css', file: require.resolve('swagger-ui-dist/swagger-ui.css') },
  'swagger-ui-bundle.js': {
    type: 'text/javascript',
    file: require.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
};

/** Without credentials. The pages load nothing from other servers. */
export function documentRoutes(
  router: Router<RequestState>,
  { publicUrl, testCards, homeLinks }: Pick<ApiDeps, 'publicUrl' | 'testCards' | 'homeLinks'>,
  operations: readonly Operation[],
): void {
  // Built at the first request, because most processes that load this file never get one.
  const document = once(async () =>
    bytesOf(JSON.stringify(createDocument(operations, { publicUrl, testCards }))),
  );
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

  const page = bytesOf(DOCS_PAGE);
  router.get('/docs', (ctx) => {
    ctx.set('Content-Security-Policy', DOCS_POLICY);
    sendCacheable(ctx, 'text/html', page);
  });

  const script = bytesOf(DOCS_SCRIPT);
  router.get('/docs/start.js', (ctx) => sendCacheable(ctx, 'text/javascript', script));

  for (const [name, { type, file }] of Object.entries(ASSETS)) {
    const asset = once(async () => bytesOf(await readFile(file)));
    router.get(`/docs/${name}`, async (ctx) => sendCacheable(ctx, type, await asset()));
  }
}

const HOME_POLICY = policyOf(
  `style-src 'sha256-${createHash('sha256').update(HOME_STYLE).digest('base64')}'`,
  'img-src data:',
);

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

/** After a failure the next call runs `work` again. */
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

/**
 * Registers the health check for load balancers, without credentials: 200 if the database accepts writes, else 503.
 * `heldSubscriptions` counts the subscriptions whose workflow is newer than the database, `blockedAccounts` the accounts
 * whose charges a gateway refuses.
 */
export function healthRoutes(router: Router<RequestState>, { db }: Pick<ApiDeps, 'db'>): void {
  router.get('/health', async (ctx) => {
    await requireWritable(db);
    const heldSubscriptions = await countHeld(db);
    const blockedAccounts = await countBlockedAccounts(db);
    send(ctx, ok({ status: 'ok', heldSubscriptions, blockedAccounts }));
  });
}
