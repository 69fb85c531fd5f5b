/**
 * Who may import whom: docs/adr/0001-layout.md, one rule for each reason. Type-only
 * imports count as imports unless a rule says `dependencyTypesNot: ['type-only']`.
 *
 * `domain/` imports nothing and `messages.ts` only `domain/`, so these direct rules also settle every
 * chain: none reaches from the API to a workflow, or from the sandbox to the database.
 */

const MESSAGES = ['^workflows/[^/]+/messages\\.ts$', '^workflows/messages\\.ts$'];
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
    'embedded',
    'scripts',
    'proof',
    'bench',
    'test',
  ];
  return `^(${all.filter((folder) => !allowed.includes(folder)).join('|')})/`;
};

const domain = [
  rule(
    'domain-imports-nothing',
    'domain/ is what everybody may import, so it imports nothing: no I/O, no clock, no package.',
    { path: '^domain/' },
    { pathNot: '^domain/' },
  ),
];

const workflows = [
  rule(
    'messages-import-domain-only',
    'The API and scripts load messages.ts; it must not bring a workflow with it.',
    { path: MESSAGES },
    { path: [foldersBut('domain', 'workflows'), '^workflows/(?![^/]+/messages\\.ts$)'] },
  ),
  rule(
    'messages-use-definitions-only',
    'defineUpdate/Signal/Query of @temporalio/workflow and definitions of @temporalio/common.',
    { path: MESSAGES },
    packagesBut('@temporalio/(workflow|common)'),
  ),
  rule(
    'workflows-stay-in-the-sandbox',
    'A workflow replays: whatever it imports is bundled and must give the same result each time.',
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
    'Nothing but @temporalio/workflow and @temporalio/common belongs in the bundle.',
    { path: '^workflows/', pathNot: MESSAGES },
    packagesBut('@temporalio/(workflow|common)'),
  ),
  rule('workflows-use-no-node', 'The sandbox has no Node.', { path: '^workflows/' }, NODE),
];

const sides = [
  rule(
    'activities-import',
    'Activities see the gateway port, not an implementation; no HTTP, no settings.',
    { path: '^activities/' },
    {
      path: [
        foldersBut('domain', 'workflows', 'activities', 'gateways', 'db', 'runtime', 'temporal'),
      ],
    },
  ),
  rule(
    'activities-see-the-port-only',
    'The port and its registry. Which gateways there are, worker.ts decides.',
    { path: '^activities/' },
    { path: '^gateways/', pathNot: '^gateways/(port|registry)\\.ts$' },
  ),
  rule(
    'activities-know-workflows-by-type',
    'By value only messages: names and id builders.',
    { path: '^activities/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'activities-use-temporal-activity',
    'The client comes in through deps; its type is enough.',
    { path: '^activities/' },
    { path: packages('@temporalio/(client|worker|workflow)'), ...VALUE },
  ),
  rule(
    'gateways-import',
    'A gateway knows rules and its port; the sandbox has its own book and no share in ours.',
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
    'doubles-are-for-scripts-and-tests',
    'Production uses a real gateway; the image does not contain the doubles.',
    { pathNot: '^(gateways/(stripe-double|fault-proxy)|embedded|scripts|proof|bench|test)/' },
    { path: '^gateways/(stripe-double|fault-proxy)/' },
  ),
  rule(
    'gateways-use-no-temporal',
    'A gateway is called by activities; it does not know them.',
    { path: '^gateways/' },
    { path: packages('@temporalio') },
  ),
  rule(
    'db-imports',
    'Queries and mapping: rules come from domain/, settings as arguments.',
    { path: '^db/' },
    { path: foldersBut('domain', 'db') },
  ),
  rule(
    'db-uses-no-temporal',
    'Rows are written for workflows, not by them.',
    { path: '^db/' },
    { path: packages('@temporalio') },
  ),
];

const processes = [
  rule(
    'api-imports',
    'The API talks to workflows through messages and to the payer through pages.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    { path: foldersBut('domain', 'workflows', 'gateways', 'db', 'api', 'runtime', 'temporal') },
  ),
  rule(
    'api-gets-runtime-injected',
    'Settings, logger and connections come in as arguments; their types may be named. Failpoints are names; the request scope and links hold no resource.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    {
      path: '^(runtime|temporal)/',
      pathNot: '^runtime/(failpoints|request-scope|update-links)\\.ts$',
      ...VALUE,
    },
  ),
  rule(
    'api-sees-gateway-port-and-events',
    'Which gateway it is, api/main.ts decides.',
    { path: '^api/', pathNot: '^api/main\\.ts$' },
    { path: '^gateways/', pathNot: '^gateways/(port|events|registry)\\.ts$' },
  ),
  rule(
    'api-knows-workflows-by-type',
    'A value import would load a workflow into the HTTP process.',
    { path: '^api/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'api-uses-no-worker',
    'Workflow code runs in workers.',
    { path: '^api/' },
    { path: packages('@temporalio/(worker|activity|workflow|testing)') },
  ),
  rule(
    'runtime-imports',
    'Settings, logs and shutdown, which every process has.',
    { path: '^runtime/' },
    { path: [foldersBut('domain', 'runtime')] },
  ),
  rule(
    'temporal-imports',
    'The client side of Temporal: starts, updates, signals and queries. Rows come through a port.',
    { path: '^temporal/' },
    { path: [foldersBut('domain', 'workflows', 'runtime', 'temporal')] },
  ),
  rule(
    'temporal-knows-messages-only',
    'By value only messages: names and id builders.',
    { path: '^temporal/' },
    { path: '^workflows/', pathNot: MESSAGES, ...VALUE },
  ),
  rule(
    'worker-knows-workflows-by-path',
    'The bundler loads them; a value import would run them outside the sandbox.',
    { path: '^worker\\.ts$' },
    { path: '^workflows/', pathNot: [...MESSAGES, '^workflows/task-queues\\.ts$'], ...VALUE },
  ),
  rule(
    'embedded-imports',
    'embedded/ runs the processes; it does not contain them.',
    { path: '^embedded/', pathNot: '^embedded/demo-merchant\\.ts$' },
    { path: foldersBut('runtime', 'temporal', 'embedded') },
  ),
];

const everywhere = [
  rule('no-cycles', 'A cycle has no order in which to read it.', {}, { circular: true }),
  rule(
    'nobody-imports-entry-points',
    'Scripts, tests and mains are started, not imported.',
    { pathNot: '^(test|scripts|proof|bench)/' },
    { path: '^(scripts|test)/|^worker\\.ts$|(^|/)main\\.ts$' },
  ),
  rule(
    'embedded-is-for-scripts-and-tests',
    'Production runs against servers of its own.',
    { pathNot: '^(embedded|scripts|proof|bench|test)/' },
    { path: '^embedded/' },
  ),
  rule(
    'zod-at-the-edges',
    'A schema library has no place in rules or in the sandbox (1 MB in every bundle).',
    { pathNot: '^(api|test|scripts|proof)/|^runtime/config\\.ts$' },
    { path: packages('zod') },
  ),
  rule(
    'not-to-dev-packages',
    'Production installs no dev packages.',
    {
      // The doubles are servers for tests. The image does not contain them.
      pathNot:
        '^(test|scripts|proof|bench|embedded)/|^gateways/(stripe-double|fault-proxy)/|\\.config\\.ts$',
    },
    { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
  ),
  rule('resolvable', 'It is not there.', {}, { couldNotResolve: true }),
];

module.exports = {
  forbidden: [...domain, ...workflows, ...sides, ...processes, ...everywhere],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.tsx', '.mjs', '.cjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
