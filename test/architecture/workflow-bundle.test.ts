import { resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { beforeAll, describe, expect, it } from 'vitest';

/** Packages that are in the bundle of a workflow that does nothing: the SDK and what it needs. */
const TEMPORAL_RUNTIME = ['@temporalio/common', '@temporalio/workflow', 'long', 'ms', 'nexus-rpc'];

/** How much our own code may add to the bundle of an empty workflow, in characters. */
const OWN_CODE_CEILING = 750_000;

const logger = new DefaultLogger('ERROR');

/** What webpack calls the modules it put in: their paths below the checkout. */
function moduleIds(code: string): string[] {
  const ids = [...code.matchAll(/^\/\*\*\*\/ "([^"]+)"$/gm)].map((match) => match[1]!);
  // Another form of comment would make every check below pass on nothing.
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
  let ids: string[];
  let size: number;
  let emptySize: number;
  let emptyIds: string[];

  beforeAll(async () => {
    const [ours, bare] = await Promise.all([
      bundleWorkflowCode({ workflowsPath: resolve('workflows/index.ts'), logger }),
      bundleWorkflowCode({
        workflowsPath: resolve('test/architecture/empty-workflow/index.ts'),
        logger,
      }),
    ]);
    ids = moduleIds(ours.code);
    size = ours.code.length;
    emptySize = bare.code.length;
    emptyIds = moduleIds(bare.code);
  });

  const packagesIn = (list: readonly string[]): string[] =>
    [...new Set(list.flatMap((id) => packageOf(id) ?? []))].toSorted();

  it('holds our workflows and the rules', () => {
    expect(ids).toContain('./workflows/index.ts');
    expect(ids.filter((id) => id.startsWith('./workflows/')).length).toBeGreaterThan(3);
    expect(ids.filter((id) => id.startsWith('./domain/')).length).toBeGreaterThan(3);
  });

  it('holds no other file of ours', () => {
    const own = ids.filter((id) => packageOf(id) === undefined && id.startsWith('./'));
    expect(own.filter((id) => !/^\.\/(workflows|domain)\//.test(id))).toEqual([]);
  });

  it('holds no package but those every workflow needs', () => {
    expect(packagesIn(emptyIds)).toEqual(TEMPORAL_RUNTIME);
    expect(packagesIn(ids)).toEqual(TEMPORAL_RUNTIME);
  });

  it('holds nothing else: no built-in of Node, no stand-in for one', () => {
    // Of an import it leaves out, webpack keeps an id without a path. The SDK has two such.
    const standIns = (list: readonly string[]): number =>
      list.filter((id) => !id.startsWith('./')).length;
    expect(standIns(ids)).toBe(standIns(emptyIds));
  });

  it('stays small: what we add to an empty workflow has a ceiling', () => {
    expect(size - emptySize).toBeGreaterThan(0);
    expect(size - emptySize).toBeLessThan(OWN_CODE_CEILING);
  });
});
