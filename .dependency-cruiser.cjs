/**
 * The allowed imports between folders, with one rule for each reason: docs/architecture.md. Type-only
 * imports count as imports unless a rule says `dependencyTypesNot: ['type-only']`.
 *
 * The rules forbid direct imports only. They also exclude every chain of imports from the API to a workflow, or from
 * the sandbox to the database, because `domain/` imports no folder and `messages.ts` imports only `domain/`.
 */

const MESSAGES = ['^workflows/[^/]+/messages\\.ts$', '^workflows/messages\\.ts$'];
/** The declarations of what is recorded. */
const SCHEMAS = '^domain/.+-schema\\.ts$';
const VALUE = { dependencyTypesNot: ['type-only'] };
const NODE = { dependencyTypes: ['core'] };

/** Matches a package, however deep under node_modules it was resolved. */
const packages = (...names) => `node_modules/(${names.join('|')})(/|$)`;

/** Packages other than the named ones. */
const packagesBut = (...names) => ({ path: 'node_modules/', pathNot: packages(...names) });

const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

/** Folders of the project other than the named ones. */
const foldersBut = (...allowed) => {
  const all = [
    'domain',
    'workflows',
    'activities',
    'gateways',
    'db',
    'api',
    'runtime',
    'temporal',
    'cli',
    'client',
    'tools',
    'test',
  ];
  return `^(${all.filter((folder) => !allowed.includes(folder)).join('|')})/`;
};

const domain = [
  rule(
    'domain-imports-nothing',
    'Every folder may import domain/, so domain/ imports no other folder, no package and nothing of Node.',
    { path: '^domain/', pathNot: SCHEMAS },
    { pathNot: '^domain/' },
  ),
  rule(
    'schemas-use-zod-only',
    'A schema declares what is recorded: its type, and the check of what is read.',
    { path: SCHEMAS },
    { pathNot: ['^domain/', packages('zod')] },
  ),
  rule(
    'domain-knows-schemas-by-type',
    'With a schema, zod would be in the workflow bundle.',
    { path: '^domain/', pathNot: [SCHEMAS, '^domain/subscription/recorded-state\\.ts$'] },
    { path: SCHEMAS, ...VALUE },
  ),
];

const workflows = [
  rule(
    'messages-import-domain-only',
    'The API and tools import messages.ts, and must not load a workflow with it.',
    { path: MESSAGES },
    { path: [foldersBut('domain', 'workflows'), '^workflows/(?![^/]+/messages\\.ts$)'] },
  ),
  rule(
    'messages-use-definitions-only',
    'A messages.ts uses only defineUpdate/Signal/Query of @temporalio/workflow and definitions of @temporalio/common.',
    { path: MESSAGES },
    packagesBut('@temporalio/(workflow|common)'),
  ),
  rule(
    'workflows-stay-in-the-sandbox',
    'Every import of a workflow is bundled, and must give the same result in each replay.',
    { path: '^workflows/', pathNot: MESSAGES },
    { path: foldersBut('domain', 'workflows', 'activities') },
  ),
  rule(
    'workflows-know-activities-by-type',
    'Activities run outside the sandbox; their code must not get into the bundle.',
    { path: '^workflows/', pathNot: MESSAGES },
    { path: '^activities/', ...VALUE },
  ),
  rule(
    'workflows-use-temporal-only',
    'The bundle contains no package other than @temporalio/workflow and @temporalio/common.',
    { path: '^workflows/', pathNot: MESSAGES },
    packagesBut('@temporalio/(workflow|common)'),
  ),
  rule(
    'workflows-use-no-node',
    'The workflow sandbox has no modules of Node.',
    { path: '^workflows/' },
    NODE,
  ),
];

const sides = [
  rule(
    'activities-import',
    'Activities import no code of the API and none of tests and tools.',
    { path: '^activities/' },
    {
      path: [
        foldersBut('domain', 'workflows', 'activities', 'gateways', 'db', 'runtime', 'temporal'),
      ],
    },
  ),
  rule(
    'activities-see-the-port-only',
    'Activities import only the port and its registry. worker.ts selects the gateways.',
    { path: '^activities/' },
    { path: '^gateways/', pathNot: '^gateways/(port|registry)\\.ts$' },
  ),
  rule(
    'activities-know-workflows-by-type',
    'Activities import messages (names and id builders) as values, and all other workflow code as types only.',
    { path: '^activities/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'activities-use-temporal-activity',
    'Activities get the client through deps, and import only its type.',
    { path: '^activities/' },
    { path: packages('@temporalio/(client|worker|workflow)'), ...VALUE },
  ),
  rule(
    'gateways-import',
    'A gateway imports domain/ and the port. The sandbox stores its charges in its own schema, and never uses db/.',
    { path: '^gateways/', pathNot: '^gateways/[^/]+/main\\.ts$' },
    { path: foldersBut('domain', 'gateways') },
  ),
  rule(
    'gateway-mains-import',
    'An entry point may use runtime/ too.',
    { path: '^gateways/[^/]+/main\\.ts$' },
    { path: foldersBut('domain', 'gateways', 'runtime') },
  ),
  rule(
    'gateways-use-no-temporal',
    'Activities call a gateway. The gateway itself does not use Temporal.',
    { path: '^gateways/' },
    { path: packages('@temporalio') },
  ),
  rule(
    'db-imports',
    'db/ has queries and mapping. It imports rules from domain/ and gets settings as arguments.',
    { path: '^db/' },
    { path: foldersBut('domain', 'db') },
  ),
  rule(
    'db-uses-no-temporal',
    'Activities call db/. The queries themselves do not use Temporal.',
    { path: '^db/' },
    { path: packages('@temporalio') },
  ),
];

const processes = [
  rule(
    'api-imports',
    'The API imports no activity and none of the code of tests and tools.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    {
      path: foldersBut('domain', 'workflows', 'gateways', 'db', 'api', 'runtime', 'temporal'),
    },
  ),
  rule(
    'api-gets-runtime-injected',
    'The API gets settings, logger and connections as arguments, and imports only their types. Failpoints, the request scope and the links hold no resource, so the API imports them as values.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    {
      path: '^(runtime|temporal)/',
      pathNot: '^runtime/(failpoints|request-scope|payer-links)\\.ts$',
      ...VALUE,
    },
  ),
  rule(
    'api-sees-the-gateway-port',
    'The API imports the port and the registry of gateways. api/main.ts selects the gateways.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    { path: '^gateways/', pathNot: '^gateways/(port|registry)\\.ts$' },
  ),
  rule(
    'api-knows-workflows-by-type',
    'A value import would load a workflow into the HTTP process.',
    { path: '^api/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'api-loads-no-worker',
    'The worker package loads native code and a bundler: 20 MB and 0.3 s at each start.',
    { path: '^(api/main|temporal/.*)\\.ts$' },
    { path: '^runtime/workflow-bundle\\.ts$', reachable: true },
  ),
  rule(
    'api-uses-no-worker',
    'Workflow code runs in workers.',
    { path: '^api/' },
    { path: packages('@temporalio/(worker|activity|workflow|testing)') },
  ),
  rule(
    'runtime-imports',
    'Every process uses runtime/ for settings, logs and shutdown, so runtime/ imports only domain/ and messages.',
    { path: '^runtime/' },
    { path: [foldersBut('domain', 'runtime')], pathNot: MESSAGES },
  ),
  rule(
    'temporal-imports',
    'temporal/ is the client side of Temporal: starts, updates, signals and queries. It gets rows as parameters.',
    { path: '^temporal/' },
    { path: [foldersBut('domain', 'workflows', 'runtime', 'temporal')] },
  ),
  rule(
    'temporal-knows-messages-only',
    'temporal/ imports messages (names and id builders) as values, and all other workflow code as types only.',
    { path: '^temporal/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'worker-knows-workflows-by-path',
    'The bundler loads workflows by path; a value import would run them outside the sandbox.',
    { path: '^worker\\.ts$' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
];

const tools = [
  rule(
    'client-imports-nothing',
    'Merchants install client/ alone. It imports no other folder and no package.',
    { path: '^client/' },
    { pathNot: '^client/', dependencyTypesNot: ['core'] },
  ),
  rule(
    'services-know-no-command',
    'A command of an operator is a process of its own, on top of what the services use.',
    { pathNot: '^(cli|tools|test)/' },
    { path: '^cli/' },
  ),
  rule(
    'product-is-free-of-tools',
    'tools/ is no part of an installation or of its image. Only tools and tests import it.',
    { pathNot: '^(tools|test)/' },
    { path: '^tools/' },
  ),
  rule(
    'embedded-imports',
    'tools/embedded/ starts the processes as children, and imports none of their code.',
    { path: '^tools/embedded/', pathNot: '^tools/embedded/demo-merchant\\.ts$' },
    {
      path: [
        foldersBut('runtime', 'temporal', 'cli', 'tools'),
        '^tools/(?!embedded/|config\\.ts$)',
        '^cli/(?!command-line/|verify/gateway-control\\.ts$)',
      ],
    },
  ),
  rule(
    'doubles-import',
    'A double stands outside the product: it shares the HTTP server and the currencies, and no code of the adapter.',
    { path: '^tools/(stripe-double|fault-proxy)/' },
    {
      path: [
        foldersBut('domain', 'gateways', 'runtime', 'tools'),
        '^gateways/(?!http-server/)',
        '^tools/(?!(stripe-double|fault-proxy)/|config\\.ts$)',
      ],
    },
  ),
];

const everywhere = [
  rule(
    'no-cycles',
    'Files that import each other cannot be read in the order of their imports.',
    {},
    { circular: true },
  ),
  rule(
    'nobody-imports-entry-points',
    'Scripts, tests and mains are started, not imported.',
    { pathNot: '^(test|tools)/' },
    { path: '^(cli/[^/]+\\.ts$|tools/scripts|test)/|^(worker|migrate)\\.ts$|(^|/)main\\.ts$' },
  ),
  rule(
    'zod-at-the-edges',
    'Only code that reads input or recorded values uses zod: it would add 1 MB to the workflow bundle.',
    { pathNot: ['^(api|cli|test|tools)/|^runtime/(config|environment)\\.ts$', SCHEMAS] },
    { path: packages('zod') },
  ),
  rule(
    'not-to-dev-packages',
    'Production installs no dev packages.',
    {
      pathNot: '^(test|tools)/|\\.config\\.ts$',
    },
    { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
  ),
  rule('resolvable', 'The imported module does not exist.', {}, { couldNotResolve: true }),
];

module.exports = {
  forbidden: [...domain, ...workflows, ...sides, ...processes, ...tools, ...everywhere],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^client/dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.tsx', '.mjs', '.cjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
