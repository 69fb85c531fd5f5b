import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { idOfCommand, base62, ID_PREFIXES, isId, newId, randomToken } from '../../domain/ids.ts';

const zeros = (byteCount: number) => new Uint8Array(byteCount);
const ones = (byteCount: number) => new Uint8Array(byteCount).fill(255);

describe('newId', () => {
  it('returns the prefix and 22 characters for every prefix [D-23]', () => {
    for (const prefix of ID_PREFIXES) {
      const id = newId(prefix, Date.UTC(2026, 0, 31), randomBytes);
      expect(id).toMatch(new RegExp(`^${prefix}_[0-9A-Za-z]{22}$`));
      expect(isId(prefix, id)).toBe(true);
    }
  });

  it('encodes the time first and the random bits second, at a fixed width [D-23]', () => {
    // The first id is 2^128 - 1 in base 62. A time of 1 ms adds 2^80.
    expect(newId('sub', 2 ** 48 - 1, ones)).toBe('sub_7n42DGM5Tflk9n8mt7Fhc7');
    expect(newId('sub', 0, zeros)).toBe('sub_0000000000000000000000');
    expect(newId('sub', 1, zeros) > newId('sub', 0, ones)).toBe(true);
  });

  it('returns ids that sort by time for any random bits [D-23]', () => {
    const instant = fc.integer({ min: 0, max: 2 ** 48 - 2 });
    const later = fc.integer({ min: 1, max: 1_000_000_000 });
    fc.assert(
      fc.property(instant, later, (atMs, ms) => {
        const laterMs = Math.min(atMs + ms, 2 ** 48 - 1);
        return newId('evt', atMs, randomBytes) < newId('evt', laterMs, randomBytes);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 48])('refuses %d as a time [D-23]', (atMs) => {
    expect(() => newId('cus', atMs, zeros)).toThrow('48 bits');
  });

  it('refuses a random source that returns too few bytes [D-23]', () => {
    expect(() => newId('cus', 0, () => new Uint8Array(9))).toThrow('bytes asked for');
  });
});

describe('isId', () => {
  it.each([
    ['another prefix', 'cus_0000000000000000000000'],
    ['no prefix', '0000000000000000000000'],
    ['an id that is too short', 'sub_000000000000000000000'],
    ['an id that is too long', 'sub_00000000000000000000000'],
    ['a character outside base 62', 'sub_000000000000000000000-'],
    ['a line end', 'sub_0000000000000000000000\n'],
    ['a number', 7],
    ['undefined', undefined],
  ])('refuses %s [D-23]', (_name, value) => {
    expect(isId('sub', value)).toBe(false);
  });
});

describe('idOfCommand', () => {
  const COMMAND = 'cmd_0351415SWzMdzqyOQW6iVF';

  it('derives the same id from the same command every time [D-17]', () => {
    expect(idOfCommand('in', COMMAND)).toBe('in_0351415SWzMdzqyOQW6iVF');
    expect(idOfCommand('rf', COMMAND)).toBe('rf_0351415SWzMdzqyOQW6iVF');
    expect(isId('in', idOfCommand('in', COMMAND))).toBe(true);
  });

  it('refuses a value that is not the id of a command [D-23]', () => {
    for (const other of ['in_0351415SWzMdzqyOQW6iVF', 'cmd_short', '']) {
      expect(() => idOfCommand('in', other)).toThrow('a command has an id of its own');
    }
  });
});

describe('base62', () => {
  it('writes a big-endian number with leading zeros [D-23]', () => {
    expect(base62(Uint8Array.of(0), 3)).toBe('000');
    expect(base62(Uint8Array.of(61), 3)).toBe('00z');
    expect(base62(Uint8Array.of(62), 3)).toBe('010');
    expect(base62(Uint8Array.of(1, 0), 3)).toBe('048'); // 256 = 4 * 62 + 8
  });

  it('throws when a number does not fit the width, instead of truncating it [D-23]', () => {
    expect(() => base62(Uint8Array.of(62), 1)).toThrow('fits the width');
  });
});

describe('randomToken', () => {
  it('has 22 characters by default, or the given number, all from base 62 [D-33]', () => {
    expect(randomToken(randomBytes)).toMatch(/^[0-9A-Za-z]{22}$/);
    expect(randomToken(randomBytes, 12)).toMatch(/^[0-9A-Za-z]{12}$/);
    expect(randomToken(randomBytes, 43)).toMatch(/^[0-9A-Za-z]{43}$/);
  });

  it('skips bytes from 248 on, which would make some characters more likely [D-33]', () => {
    const bytes = [255, 248, 247, 61, 62, 0];
    const source = (byteCount: number) =>
      Uint8Array.from({ length: byteCount }, (_, at) => bytes[at % bytes.length] ?? 0);
    expect(randomToken(source, 4)).toBe('zz00'); // modulo 62, the bytes 247 and 61 are 61 (z); 62 and 0 are 0
  });

  it('refuses a random source that never returns a usable byte [D-33]', () => {
    expect(() => randomToken(ones)).toThrow('below 248');
  });
});
