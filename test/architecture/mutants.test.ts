import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MUTANTS } from '../../scripts/mutants/planted.ts';

test.each(MUTANTS)('there is one place for "$defect", and a test to notice it', (mutant) => {
  expect(readFileSync(mutant.file, 'utf8').split(mutant.find)).toHaveLength(2);
  expect(existsSync(mutant.test)).toBe(true);
});
