import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundleWorkflows } from '../../runtime/workflow-bundle.ts';

/** The packages in the bundle of an empty workflow: the SDK and its dependencies. */
const TEMPORAL_RUNTIME = ['@temporalio/common', '@temporalio/workflow', 'long', 'ms', 'nexus-rpc'];

/** The maximum that our code may add to the bundle of an empty workflow, in characters. */
const OWN_CODE_CEILING = 1_000_000;

const logger = new DefaultLogger('ERROR');

/** The ids of the bundled modules: their paths in the checkout, from webpack's comments. */
function moduleIds(code: string): string[] {
  const ids = [...code.matchAll(/^\/\*\*\*\/ "([^"]+)"$/gm)].map((match) => match[1]!);
  // Without ids, for example after a change of webpack's comments, every check below would pass.
  expect(ids.length).toBeGreaterThan(50);
  return [...new Set(ids)];
}

function packageOf(id: string): string | undefined {
  const tail = id.split('node_modules/').at(-1)!;
  if (tail === id) return undefined;
  const parts = tail.split('/');
  return parts[0]!.startsWith('@') ? `${parts[0]}/${parts[1]}` : parts[0];
}

describe('the workflow bundle', () => {
  let code: string;
  let ids: string[];
  let size: number;
  let emptySize: number;
  let emptyIds: string[];

  beforeAll(async () => {
    const [ours, bare] = await Promise.all([
      bundleWorkflows(),
      bundleWorkflowCode({
        workflowsPath: resolve('test/architecture/empty-workflow/index.ts'),
        logger,
      }),
    ]);
    code = ours.code;
    ids = moduleIds(code);
    size = code.length;
    emptySize = bare.code.length;
    emptyIds = moduleIds(bare.code);
  });

  const packagesIn = (list: readonly string[]): string[] =>
    [...new Set(list.flatMap((id) => packageOf(id) ?? []))].toSorted();

  it('contains the workflows and the domain code', () => {
    expect(ids).toContain('./workflows/index.ts');
    expect(ids.filter((id) => id.startsWith('./workflows/')).length).toBeGreaterThan(3);
    expect(ids.filter((id) => id.startsWith('./domain/')).length).toBeGreaterThan(3);
  });

  it('contains no other file of this project', () => {
    const own = ids.filter((id) => packageOf(id) === undefined && id.startsWith('./'));
    expect(own.filter((id) => !/^\.\/(workflows|domain)\//.test(id))).toEqual([]);
  });

  it('contains only the packages of an empty workflow', () => {
    expect(packagesIn(emptyIds)).toEqual(TEMPORAL_RUNTIME);
    expect(packagesIn(ids)).toEqual(TEMPORAL_RUNTIME);
  });

  it('contains no built-in module of Node and no replacement of such a module', () => {
    // Webpack keeps an id without a path for an excluded import. The SDK has two such imports.
    const standIns = (list: readonly string[]): number =>
      list.filter((id) => !id.startsWith('./')).length;
    expect(standIns(ids)).toBe(standIns(emptyIds));
  });

  it('adds at most 1,000,000 characters to the bundle of an empty workflow', () => {
    expect(size - emptySize).toBeGreaterThan(0);
    expect(size - emptySize).toBeLessThan(OWN_CODE_CEILING);
  });

  it('keeps no state in a module, because all runs of a workflow thread share the modules', () => {
    const own = ids.filter((id) => /^\.\/(workflows|domain)\/.+\.ts$/.test(id));
    expect(own.length).toBeGreaterThan(40);
    const variables = own.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^(export )?(let|var) .*$/gm)].map(String),
    );
    expect(variables).toEqual([]);
  });

  it('copies objects by the syntax of the language', () => {
    expect(code).not.toContain('_object_spread');
  });
});
