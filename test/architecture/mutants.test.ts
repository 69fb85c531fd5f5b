import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MUTANTS } from '../../tools/proof/mutants/planted.ts';

test.each(MUTANTS)(
  'the text that the planted defect "$defect" replaces occurs once in its file, and its test file exists',
  (mutant) => {
    expect(readFileSync(mutant.file, 'utf8').split(mutant.find)).toHaveLength(2);
    expect(existsSync(mutant.test)).toBe(true);
  },
);
