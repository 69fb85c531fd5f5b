import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { cruise } from 'dependency-cruiser';
import type { ICruiseOptions, ICruiseResult, IViolation } from 'dependency-cruiser';
import { beforeAll, describe, expect, it } from 'vitest';

const rules: unknown = createRequire(import.meta.url)('../../.dependency-cruiser.cjs');
const { forbidden, options } = rules as {
  forbidden: { name: string }[];
  options: ICruiseOptions;
};

/** The files of the fixture project, so that the imports below resolve. */
const TARGETS = {
  'domain/money.ts': 'export const money = 1;',
  'domain/subscription/state-schema.ts': 'export const STATE = 1;',
  'workflows/subscription/messages.ts': 'export const id = 1;',
  'workflows/subscription/workflow.ts': 'export const subscription = 1;',
  'activities/index.ts': 'export const create = 1;',
  'gateways/port.ts': 'export type Gateway = string;',
  'tools/stripe-double/server.ts': 'export const server = 1;',
  'gateways/sandbox/client.ts': 'export const client = 1;',
  'db/client.ts': 'export const db = 1;',
  'api/app.ts': 'export const app = 1;',
  'runtime/config.ts': 'export const config = 1;',
  'runtime/workflow-bundle.ts': 'export const bundle = 1;',
  'tools/embedded/postgres.ts': 'export const embedded = 1;',
  'tools/scripts/demo.ts': 'export const demo = 1;',
  'cli/review/command.ts': 'export const review = 1;',
  'worker.ts': 'export const worker = 1;',
};

/** A file, a forbidden import in this file, and the rule that must report the import. */
const FORBIDDEN = `
  domain/x.ts | import '../db/client.ts'; | domain-imports-nothing
  domain/x.ts | import 'node:crypto'; | domain-imports-nothing
  domain/x.ts | import type { z } from 'zod'; | domain-imports-nothing
  domain/x.ts | import './subscription/state-schema.ts'; | domain-knows-schemas-by-type
  domain/subscription/x-schema.ts | import '../../db/client.ts'; | schemas-use-zod-only
  domain/subscription/x-schema.ts | import 'koa'; | schemas-use-zod-only
  workflows/orders/messages.ts | import '../subscription/workflow.ts'; | messages-import-domain-only
  workflows/orders/messages.ts | import '../../db/client.ts'; | messages-import-domain-only
  workflows/orders/messages.ts | import '@temporalio/client'; | messages-use-definitions-only
  workflows/orders/workflows.ts | import '../../db/client.ts'; | workflows-stay-in-the-sandbox
  workflows/orders/workflows.ts | import '../../api/app.ts'; | workflows-stay-in-the-sandbox
  workflows/orders/workflows.ts | import '../../activities/index.ts'; | workflows-know-activities-by-type
  workflows/orders/workflows.ts | import 'drizzle-orm'; | workflows-use-temporal-only
  workflows/orders/steps.ts | import 'node:fs'; | workflows-use-no-node
  activities/x.ts | import '../api/app.ts'; | activities-import
  activities/x.ts | import '../gateways/sandbox/client.ts'; | activities-see-the-port-only
  activities/x.ts | import '../workflows/subscription/workflow.ts'; | activities-know-workflows-by-type
  activities/x.ts | import '@temporalio/client'; | activities-use-temporal-activity
  gateways/sandbox/x.ts | import '../../db/client.ts'; | gateways-import
  gateways/sandbox/x.ts | import '../../runtime/config.ts'; | gateways-import
  gateways/sandbox/main.ts | import '../../db/client.ts'; | gateway-mains-import
  worker.ts | import './tools/stripe-double/server.ts'; | product-is-free-of-tools
  gateways/sandbox/x.ts | import '@temporalio/common'; | gateways-use-no-temporal
  db/x.ts | import '../runtime/config.ts'; | db-imports
  db/x.ts | import '@temporalio/client'; | db-uses-no-temporal
  api/x.ts | import '../activities/index.ts'; | api-imports
  api/x.ts | import '../runtime/config.ts'; | api-gets-runtime-injected
  api/x.ts | import '../gateways/sandbox/client.ts'; | api-sees-the-gateway-port
  api/x.ts | import '../workflows/subscription/workflow.ts'; | api-knows-workflows-by-type
  temporal/x.ts | import '../runtime/workflow-bundle.ts'; | api-loads-no-worker
  api/x.ts | import '@temporalio/worker'; | api-uses-no-worker
  runtime/x.ts | import '../db/client.ts'; | runtime-imports
  temporal/x.ts | import '../db/client.ts'; | temporal-imports
  temporal/x.ts | import '../workflows/subscription/workflow.ts'; | temporal-knows-messages-only
  worker.ts | import './workflows/subscription/workflow.ts'; | worker-knows-workflows-by-path
  api/x.ts | import '../tools/embedded/postgres.ts'; | product-is-free-of-tools
  api/x.ts | import '../cli/review/command.ts'; | services-know-no-command
  cli/x.ts | import '../tools/embedded/postgres.ts'; | product-is-free-of-tools
  cli/x.ts | import 'fast-check'; | not-to-dev-packages
  tools/embedded/x.ts | import '../../api/app.ts'; | embedded-imports
  tools/embedded/x.ts | import '../../cli/review/command.ts'; | embedded-imports
  tools/embedded/x.ts | import '../stripe-double/server.ts'; | embedded-imports
  tools/stripe-double/x.ts | import '../../db/client.ts'; | doubles-import
  tools/stripe-double/x.ts | import '../../gateways/port.ts'; | doubles-import
  client/x.ts | import '../db/client.ts'; | client-imports-nothing
  api/x.ts | import '../worker.ts'; | nobody-imports-entry-points
  db/x.ts | import 'zod'; | zod-at-the-edges
  api/x.ts | import 'fast-check'; | not-to-dev-packages
  domain/money.ts | import './x.ts'; | no-cycles
  db/x.ts | import './nowhere.ts'; | resolvable
`
  .trim()
  .split('\n')
  .map((row) => row.trim().split(' | ') as [file: string, line: string, rule: string]);

/** The name of an example's own file, of the kind that the rules mean. Examples for `worker.ts` share it. */
function ownFile(file: string, index: number): string {
  if (file === 'worker.ts') return file;
  const [folder, name] = [dirname(file), basename(file)];
  return name.startsWith('x.') || file === 'domain/money.ts'
    ? file.replace('/x.', `/x${index}.`)
    : join(dirname(folder), `${basename(folder)}-${index}`, name);
}

describe('the import rules', () => {
  let violations: readonly IViolation[];

  beforeAll(async () => {
    const project = mkdtempSync(join(tmpdir(), 'perennial-rules-'));
    try {
      for (const name of ['node_modules', 'package.json', 'tsconfig.json']) {
        symlinkSync(resolve(name), join(project, name));
      }
      const lines = [
        ...Object.entries(TARGETS),
        ['domain/x.ts', "import './money.ts';"] as const,
        ...FORBIDDEN.map(([file, line], index) => [ownFile(file, index), line] as const),
      ];
      for (const [name, line] of lines) {
        mkdirSync(dirname(join(project, name)), { recursive: true });
        appendFileSync(join(project, name), `${line}\n`);
      }
      const { output } = await cruise([...new Set(lines.map(([name]) => name.split('/')[0]!))], {
        ...options,
        baseDir: project,
        validate: true,
        ruleSet: { forbidden: forbidden as never },
      });
      ({ violations } = (output as ICruiseResult).summary);
    } finally {
      rmSync(project, { recursive: true });
    }
  });

  /** The names of the rules that the example's import violates. */
  function broken(index: number): string[] {
    const [file, line] = FORBIDDEN[index]!;
    const target = /'(?:\.*\/)*(?:node:)?([^']+)'/.exec(line)?.[1] ?? '';
    return violations
      .filter(({ from, to }) => from === ownFile(file, index) && to.includes(target))
      .map(({ rule }) => rule.name);
  }

  it.each(FORBIDDEN.map((example, index) => [...example, index] as const))(
    'refuse in %s: %s (%s)',
    (_file, _line, rule, index) => {
      expect(broken(index)).toContain(rule);
    },
  );

  it('report nothing but the forbidden imports', () => {
    const files = new Set(FORBIDDEN.map(([file], index) => ownFile(file, index)));
    expect(violations.filter(({ from }) => !files.has(from) && from !== 'domain/x.ts')).toEqual([]);
  });

  it('are each covered by an example of a forbidden import', () => {
    const shown = new Set(FORBIDDEN.map(([, , rule]) => rule));
    expect(forbidden.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
  });
});
