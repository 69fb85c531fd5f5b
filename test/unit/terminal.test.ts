import { describe, expect, it } from 'vitest';
import { merchantNameProblem } from '../../cli/merchant/name.ts';
import { errorText, jsonText, printable } from '../../cli/command-line/terminal.ts';
import { problemLine } from '../../cli/import/print-summary.ts';

describe('foreign text', () => {
  it.each([
    ['Tea club', 'Tea club'],
    ['Café 茶 \u{1f375}', 'Café 茶 \u{1f375}'],
    ['a\nb\r\tc', 'a\\u000ab\\u000d\\u0009c'],
    ['\u001b[31mred\u0007', '\\u001b[31mred\\u0007'],
    ['\u009b2J\u007f', '\\u009b2J\\u007f'],
    ['\u202egnp.exe\u2028', '\\u202egnp.exe\\u2028'],
  ])('%j is printed as %j', (text, shown) => expect(printable(text)).toBe(shown));

  it('cannot forge a line of an import’s report', () => {
    const line = { line: 7, result: 'problem', problem: 'amount: is\u001b[1A required' } as const;
    expect(problemLine({ ...line, importId: 'old-1\nline 8 (x): ok' })).toBe(
      'line 7 (old-1\\u000aline 8 (x): ok): amount: is\\u001b[1A required',
    );
  });

  it('in an error keeps the error’s line breaks, indented', () => {
    expect(errorText('Nothing was changed.\n  --logo: bad\nforged\u001b[2J')).toBe(
      'Nothing was changed.\n  --logo: bad\n  forged\\u001b[2J',
    );
  });

  it('in JSON has no control character, and the JSON has the same value', () => {
    const value = { name: 'a\u009b\u202e\u001b\u007f' };
    expect(jsonText(value)).toBe('{"name":"a\\u009b\\u202e\\u001b\\u007f"}');
    expect(JSON.parse(jsonText(value))).toEqual(value);
  });
});

it('a total is a JSON number up to 2^53 - 1 and a string of digits above', () => {
  expect(jsonText({ total: 9_007_199_254_740_991n, more: 9_007_199_254_740_993n })).toBe(
    '{"total":9007199254740991,"more":"9007199254740993"}',
  );
});

describe('the name of a merchant', () => {
  it.each(['A', 'Tea club', 'Café 茶 & Co.', '\u{20bb7}'.repeat(100)])('%j is accepted', (name) =>
    expect(merchantNameProblem(name)).toBeNull(),
  );

  it.each(['', '   ', 'a\nb', '\u001b[31m', 'a\u202eb', 'x\u0085', '\ud800', 'x'.repeat(101)])(
    '%j is refused',
    (name) =>
      expect(merchantNameProblem(name)).toBe(
        'The name must have 1 to 100 characters, not only blanks, and no control characters.',
      ),
  );
});
