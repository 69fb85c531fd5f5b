import { expect, test } from 'vitest';
import { citationsOf, coverageOf } from '../../tools/scripts/check-coverage/coverage.ts';
import { RULES } from '../../tools/scripts/check-coverage/rules.ts';

// Ids are not written out in titles here, because the check of this project reads this file, too.
const EVERY_RULE = `test('holds [${Object.keys(RULES).join(', ')}]', run);`;

const rowOf = (document: string, id: string) =>
  document.split('\n').find((line) => line.startsWith(`| ${id} |`));

test('the document names the files whose titles, cases and inserted rules cite a rule', () => {
  const money = [
    "test('is counted in cents [D-01]', () => {});",
    'test.each(CASES)(`of ${currency} has its digits [D-02]`, () => {});',
    "const CASES = [['a text instead of a number [D-04]', '1999'], { rules: 'IF-4.9, D-31' }];",
    "test.skip('is printed in dollars [D-05]', () => {});",
    "describe.skip('later', () => { test('is the currency [D-45]', () => {}); });",
    '// test("only a comment [D-06]")',
  ];
  const { document, problems } = coverageOf(
    new Map([
      ['test/api/money.test.tsx', money.join('\n')],
      ['test/unit/every-rule.test.ts', EVERY_RULE],
    ]),
  );
  expect(problems).toEqual([]);
  expect(['D-01', 'D-02', 'D-04', 'IF-4.9', 'D-31'].map((id) => rowOf(document, id))).toEqual([
    '| D-01 | Amounts are safe integers in minor units | `api/money` `unit/every-rule` |',
    '| D-02 | Currencies come from one ISO 4217 table | `api/money` `unit/every-rule` |',
    '| D-04 | Instants are UTC; ISO text or epoch milliseconds | `api/money` `unit/every-rule` |',
    '| IF-4.9 | POST /subscription/manual-retry | `api/money` `unit/every-rule` |',
    '| D-31 | Manual retry and its cooldown | `api/money` `unit/every-rule` |',
  ]);
  expect(['D-05', 'D-45', 'D-06'].map((id) => rowOf(document, id)).join()).not.toContain('money');
});

test('a rule without a running test and a title with an unknown rule are problems', () => {
  const unknown = ['D', 99].join('-');
  const tests = new Map([
    ['test/unit/most.test.ts', EVERY_RULE.replace(', D-45', '')],
    ['test/unit/new.test.ts', `test('is new [${unknown}]', run);`],
  ]);
  expect(coverageOf(tests).problems).toEqual([
    `test/unit/new.test.ts cites ${unknown}, which is no rule`,
    'D-45 (presentmentCurrency) has no test',
  ]);
});

test('code of the product that cites a rule is a problem', () => {
  const rule = ['D', '05'].join('-');
  const product = new Map([
    ['domain/calendar.ts', `/** Rule: ${rule}. */ // ${rule}`],
    ['domain/money.ts', 'export const one = 100;'],
  ]);
  expect(citationsOf(product)).toEqual([
    `domain/calendar.ts cites ${rule}: cite it in a test's title`,
  ]);
});
