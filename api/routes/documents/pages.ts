export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Perennial API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<main id="ui"><noscript>This page needs JavaScript. <a href="/openapi.json">/openapi.json</a> has the same content as JSON.</noscript></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** Because of `validatorUrl: null`, the page sends the document to no external validator. */
export const DOCS_SCRIPT = `SwaggerUIBundle({
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

/** The page loads only from this server. Swagger UI sets inline styles and has its icons in data URLs. */
export const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page at `/` for people who open the API's address in a browser. */

export interface HomeLink {
  readonly url: string;
  readonly text: string;
}

const OWN_LINKS: readonly HomeLink[] = [
  { url: '/docs', text: 'API documentation' },
  { url: '/openapi.json', text: 'OpenAPI document' },
];

export const HOME_STYLE = `:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 36rem; padding: 3rem 1.25rem; font: 1rem/1.6 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
`;

export function homePage(links: readonly HomeLink[]): string {
  const items = [...OWN_LINKS, ...links].map(
    ({ url, text }) => `<li><a href="${escaped(url)}">${escaped(text)}</a></li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Perennial</title>
<link rel="icon" href="data:,">
<style>${HOME_STYLE}</style>
</head>
<body>
<main>
<h1>Perennial</h1>
<p>A payment and subscription-billing service. Merchants call its API with their credentials. Payers open links to
its hosted pages.</p>
<ul>
${items.join('\n')}
</ul>
</main>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
