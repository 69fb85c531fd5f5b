import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSealing, keyRingOf, SealingError } from '../../runtime/sealing.ts';

const KEY = Buffer.alloc(32, 7);
const SECRET = 'whsec_ein Schlüssel';

describe('sealing', () => {
  it('opens a value with the same key and the same record id [D-55]', () => {
    const sealed = createSealing([KEY]).seal(SECRET, 'whc_1');
    expect(createSealing([Buffer.from(KEY)]).open(sealed, 'whc_1')).toBe(SECRET);
    expect(createSealing([KEY]).open(createSealing([KEY]).seal('', 'whc_1'), 'whc_1')).toBe('');
  });

  it('returns bytes without the plain text, and other bytes when the same text is sealed again [D-55]', () => {
    const sealing = createSealing([KEY]);
    const [first, second] = [sealing.seal(SECRET, 'whc_1'), sealing.seal(SECRET, 'whc_1')];
    expect(first.includes('whsec_')).toBe(false);
    expect(first.equals(second)).toBe(false);
  });

  it('refuses to open a value under another record id [D-55]', () => {
    const sealing = createSealing([KEY]);
    const sealed = sealing.seal(SECRET, 'whc_1');
    expect(() => sealing.open(sealed, 'whc_2')).toThrow(
      new SealingError('the sealed record was changed or belongs to another record'),
    );
  });

  it('reports the wrong key, not a damaged value, when it opens with another key [D-55]', () => {
    const sealed = createSealing([KEY]).seal(SECRET, 'whc_1');
    expect(() => createSealing([randomBytes(32)]).open(sealed, 'whc_1')).toThrow(
      new SealingError('sealed with another key'),
    );
  });

  it('refuses to open a value in which any byte is changed or missing [D-55]', () => {
    const sealing = createSealing([KEY]);
    const sealed = sealing.seal(SECRET, 'whc_1');
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(() => sealing.open(changed, 'whc_1'), `byte ${at}`).toThrow(SealingError);
      expect(() => sealing.open(sealed.subarray(0, at), 'whc_1'), `${at} bytes`).toThrow(
        SealingError,
      );
    }
  });

  it('seals with the first key of a ring and opens with each [D-55]', () => {
    const [next, former] = [randomBytes(32), randomBytes(32)];
    const before = createSealing([former]).seal(SECRET, 'whc_1');
    const ring = createSealing(
      keyRingOf(`${next.toString('base64')}, ${former.toString('base64')}`),
    );
    expect(ring.open(before, 'whc_1')).toBe(SECRET);
    const sealed = ring.seal(SECRET, 'whc_1');
    expect(createSealing([next]).open(sealed, 'whc_1')).toBe(SECRET);
    const keyIdIn = (record: Buffer) => record.subarray(1, 9);
    expect(ring.keyIds).toEqual([keyIdIn(sealed), keyIdIn(before)]);
  });

  it('refuses an empty ring and a key that is not 32 bytes long [D-55]', () => {
    expect(() => createSealing([])).toThrow(SealingError);
    expect(() => createSealing([KEY, Buffer.alloc(31)])).toThrow(SealingError);
  });
});
