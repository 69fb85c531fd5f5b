/** One row of a table in docs/interface-coverage.md: a rule, its statement and its proofs. */
export interface Row {
  readonly line: number;
  readonly id: string;
  readonly statement: string;
  readonly proofs: readonly Proof[];
}

/** A test, named by its file under `test/` and a part of its title. */
export interface Proof {
  readonly file: string;
  readonly part: string;
}

/**
 * Reads the rows that begin with the id of a rule: `| id | statement | proofs |`. A proof is
 * `` `file` title ``; several proofs are separated by `<br>`. A malformed proof gets a `file` that does not
 * exist, so the check reports the proof.
 *
 * @throws Error naming the first malformed row.
 */
export function readRows(markdown: string): Row[] {
  return markdown.split('\n').flatMap((text, index) => {
    if (!/^\|\s*(?:D|IF)-/.test(text)) return [];
    const [, id, statement, proofs] = /^\| (\S+) \| ([^|]+) \|([^|]*)\|$/.exec(text) ?? [];
    if (id === undefined || statement === undefined || proofs === undefined) {
      throw new Error(`line ${index + 1} is not | rule | statement | proofs |: ${text}`);
    }
    return [{ line: index + 1, id, statement, proofs: readProofs(proofs) }];
  });
}

function readProofs(cell: string): Proof[] {
  const parts = cell.split('<br>').map((part) => part.trim());
  return parts
    .filter((part) => part !== '')
    .map((part) => {
      const [, file = '', title = ''] = /^`([\w./-]+)` (.+)$/.exec(part) ?? [];
      return file === '' ? { file: `of "${part}"`, part } : { file, part: title };
    });
}
