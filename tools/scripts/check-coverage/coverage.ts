import { readTitles } from './titles.ts';

/** A row of the page, up to its subject. */
const ROW = /^\| ((?:IF|D)-\S+) \| (.*?) \| /gm;
const RULE_ID = /\b(?:D-\d\d[a-z]?|IF-\d{1,2}(?:\.\d{1,2})?)\b|\bD-§\d/g;

export interface Coverage {
  readonly document: string;
  readonly problems: readonly string[];
}

/** `page` is the document, whose rows have the rules. `tests` are the texts of the test files by their paths. */
export function coverageOf(page: string, tests: ReadonlyMap<string, string>): Coverage {
  const rules = new Map([...page.matchAll(ROW)].map(([, id = '', subject]) => [id, subject]));
  const problems = new Set(rules.size === 0 ? ['the document has no rule'] : []);
  const provedBy = new Map([...rules.keys()].map((id) => [id, new Set<string>()]));
  for (const [path, text] of tests) {
    for (const [id] of readTitles(path, text).join('\n').matchAll(RULE_ID)) {
      const files = provedBy.get(id);
      if (files) files.add(path.replace(/^test\//, '').replace(/(?:\.test)?\.tsx?$/, ''));
      else problems.add(`${path} cites ${id}, which is no rule`);
    }
  }
  for (const [id, files] of provedBy) {
    if (files.size === 0) problems.add(`${id} (${rules.get(id)}) has no test`);
  }
  const rows = [...provedBy].map(([id, files]) => {
    const names = [...files].map((file) => `\`${file}\``).join(' ');
    return `| ${id} | ${rules.get(id)} | ${names} |`;
  });
  return { document: pageOf(rows), problems: [...problems] };
}

/** Code of the product that cites a rule: rule ids stand in test titles only. */
export function citationsOf(product: ReadonlyMap<string, string>): string[] {
  return [...product].flatMap(([path, text]) =>
    [...new Set(text.match(RULE_ID))].map((id) => `${path} cites ${id}: cite it in a test's title`),
  );
}

function pageOf(rows: readonly string[]): string {
  return `# The rules of the interface, and the tests that prove them

\`npm run check:coverage -- --write\` fills in the test files: those with the rule's id in a title. \`IF-\` are the
sections of the agreed interface, \`D-\` the answers to what it leaves open. Files are under \`test/\`.

| Rule | Subject | Test files |
|---|---|---|
${rows.join('\n')}
`;
}
