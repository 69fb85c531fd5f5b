import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { repeatedMember } from '../../api/http/json.ts';

describe('a member that an object of JSON has twice', () => {
  test.for([
    ['{"amount":1999,"amount":9900}', 'amount'],
    ['{"amount":1,"\\u0061mount":1}', 'amount'],
    ['{"a":{"b":1},"c":[0,{"d":1},{"d":2,"e":[],"d":3}]}', 'c[2].d'],
    ['[{"a":1},{"a":[{"x":{}},[1,2,{"y":1,"y":2}]]}]', '[1].a[1][2].y'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
    ['{ "a" : "b:{,\\"a\\":" , "a" : null }', 'a'],
  ])('of %s is found at %s [D-10]', ([json = '', path]) => {
    expect(() => JSON.parse(json) as unknown).not.toThrow();
    expect(repeatedMember(json)).toBe(path);
  });

  test('is in no text that JSON.stringify writes, and in each after a copy of a member [D-10]', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, name) => {
        const json = JSON.stringify(value);
        expect(repeatedMember(json)).toBeNull();
        const key = JSON.stringify(name);
        expect(repeatedMember(`[${json},{${key}:${json},"${name.length}x":0,${key}:1}]`)).toBe(
          `[1].${name}`,
        );
      }),
      { numRuns: 500 },
    );
  });

  test('is found in a text of 500 kB, however deep [D-10]', () => {
    const deep = `${'{"a":'.repeat(80_000)}1${'}'.repeat(80_000)}`;
    expect(repeatedMember(deep)).toBeNull();
    expect(repeatedMember(`{"a":${deep},"a":"${'x'.repeat(100_000)}"}`)).toBe('a');
  });
});
