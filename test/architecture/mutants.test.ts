import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MUTANTS } from '../../proof/mutants/planted.ts';

test.each(MUTANTS)(
  'the planted defect $defect has exactly one place in the code and an existing test',
  (mutant) => {
    expect(readFileSync(mutant.file, 'utf8').split(mutant.find)).toHaveLength(2);
    expect(existsSync(mutant.test)).toBe(true);
  },
);
