#!/usr/bin/env node
// Runs a command of this project. Before that, it checks the Node version, and installs the packages of
// package-lock.json if they are missing or outdated. An operator's command installs none: see BESIDE_A_START. This file is
// plain JavaScript, because it runs before any package is installed.
//
//   node tools/scripts/run.mjs <command> [arguments]

import { spawn } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
/** npm's list of the installed packages. npm writes it at the end of an installation. */
const INSTALLED = 'node_modules/.package-lock.json';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** The steps of `check`, each with the advice to print if it fails. */
const CHECKS = [
  { script: 'check:format', fix: 'npm run format' },
  { script: 'check:lint', fix: 'npx oxlint --type-aware --fix .' },
  { script: 'check:types', fix: 'npx tsc --noEmit, and correct the errors' },
  {
    script: 'check:arch',
    fix: 'move the import to where docs/architecture.md allows it',
  },
  { script: 'check:unused', fix: 'remove the unused code: npx knip --fix --allow-remove-files' },
  {
    script: 'check:coverage',
    fix: 'npm run check:coverage -- --write, and a test for a rule that has none',
  },
];

const tsx = (file, options) => (args) =>
  run(process.execPath, ['--import', 'tsx', file, ...args], options);

const VITEST = 'node_modules/vitest/vitest.mjs';
const vitest =
  (...options) =>
  (args) =>
    run(process.execPath, [VITEST, 'run', ...options, ...args]);

/** The tests on another version of Node, which npm downloads as a package. */
const vitestOn = ([version = '24', ...args]) => {
  const node = `--package=node-${process.platform}-${process.arch}@${version}`;
  return run('npx', ['--yes', node, '--', 'node', VITEST, 'run', ...args]);
};

const OPERATOR = 'merchant review audit explain simulate histories replay import verify'.split(' ');

/** Commands that run beside `npm start`. An installation would delete the packages that its processes load. */
const BESIDE_A_START = [...OPERATOR, 'demo', 'listen', 'trigger', 'fuzz'];

const programs = (folder, names) =>
  Object.fromEntries(names.map((name) => [name, tsx(`${folder}/${name}.ts`)]));

/** @type {Record<string, (args: string[]) => Promise<number>>} */
const COMMANDS = {
  start: tsx('tools/scripts/start.ts', { endsWithUs: true }),
  ...programs('cli', OPERATOR),
  ...programs('tools/scripts', [
    'demo',
    'listen',
    'trigger',
    'fuzz',
    'chaos',
    'mutants',
    'rehearse',
  ]),
  'bench:billing-day': tsx('tools/bench/billing-day.ts', { endsWithUs: true }),
  'bench:endpoints': tsx('tools/bench/endpoints.ts', { endsWithUs: true }),
  'bench:recovery': tsx('tools/bench/recovery.ts', { endsWithUs: true }),
  'bench:migrations': tsx('tools/bench/migrations.ts'),
  test: vitest(),
  'test:harm': vitest('--project', 'harm'),
  'test:node': vitestOn,
  check,
};

const [name, ...args] = process.argv.slice(2);
const command = COMMANDS[name ?? ''];
if (command === undefined) {
  fail(`Usage: node tools/scripts/run.mjs ${Object.keys(COMMANDS).join('|')} [arguments]`);
}
process.chdir(ROOT);
checkNodeVersion();
await installPackages();
process.exit(await command(args));

function checkNodeVersion() {
  const wanted = JSON.parse(readFileSync('package.json', 'utf8')).engines.node;
  const least = wanted.replace('>=', '').split('.').map(Number);
  const have = process.versions.node.split('.').map(Number);
  const difference = least.map((part, i) => have[i] - part).find((part) => part !== 0) ?? 0;
  if (difference < 0) fail(`This needs Node ${wanted}; this is Node ${process.versions.node}.`);
}

/** Runs `npm ci` unless node_modules has every package of package-lock.json in its version. */
async function installPackages() {
  if (arePackagesInstalled()) return;
  if (lstatSync('node_modules', { throwIfNoEntry: false })?.isSymbolicLink()) {
    fail('node_modules is a link and does not match package-lock.json. Nothing was installed.');
  }
  const why = existsSync('node_modules') ? 'do not match package-lock.json' : 'are not there yet';
  if (BESIDE_A_START.includes(name)) {
    fail(
      `The packages in node_modules ${why}. This command installs none, because processes of this ` +
        'checkout may be using them. Stop these processes, then run npm ci.',
    );
  }
  console.error(`packages ${why}; installing them with npm ci`);
  const startedAt = performance.now();
  const options = ['--include=dev', '--no-fund', '--no-audit', '--loglevel=error'];
  const code = await run('npm', ['ci', ...options], { stdout: process.stderr });
  if (code !== 0) fail('npm ci failed, see above. Nothing was started.');
  console.error(`packages installed in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
}

/** An optional package of another platform is not installed. */
function arePackagesInstalled() {
  if (!existsSync(INSTALLED)) return false;
  const packagesIn = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const installed = packagesIn(INSTALLED);
  return Object.entries(packagesIn('package-lock.json')).every(
    ([path, { version, optional }]) =>
      path === '' || (installed[path] ? installed[path].version === version : optional),
  );
}

async function check() {
  const failures = [];
  for (const step of CHECKS) {
    console.log(`\n> ${step.script}`);
    if ((await run('npm', ['run', '--silent', step.script])) !== 0) failures.push(step);
  }
  console.log('');
  for (const { script, fix } of failures) console.log(`failed: ${script}. Fix: ${fix}`);
  if (failures.length === 0) console.log(`check: all ${CHECKS.length} steps passed`);
  return failures.length === 0 ? 0 : 1;
}

/** With `endsWithUs` stdin is a pipe that closes with this process, even by SIGKILL: the program then stops. */
function run(program, args, { endsWithUs = false, stdout = 'inherit' } = {}) {
  return new Promise((done) => {
    const child = spawn(program, args, {
      stdio: [endsWithUs ? 'pipe' : 'inherit', stdout, 'inherit'],
      env: endsWithUs ? { ...process.env, PERENNIAL_EXIT_WITH_PARENT: '1' } : process.env,
    });
    const pass = (signal) => child.kill(signal);
    for (const signal of SIGNALS) process.on(signal, pass);
    const parentWatch = endsWithUs ? watchParent(() => child.kill('SIGTERM')) : undefined;
    child.on('error', (error) => fail(`${program} could not be started: ${error.message}`));
    child.on('close', (code, signal) => {
      clearInterval(parentWatch);
      for (const name of SIGNALS) process.off(name, pass);
      done(code ?? (signal === 'SIGINT' ? 130 : 1));
    });
  });
}

/** Calls `onGone` when the parent process has ended. If npm is killed, its children must stop too. */
function watchParent(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent) onGone();
  }, 1_000);
  timer.unref();
  return timer;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
