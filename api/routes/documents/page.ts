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
