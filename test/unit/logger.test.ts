import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLogger, SECRET_FIELDS } from '../../runtime/logger.ts';

/** A destination that appends every line to `lines`. */
const collecting = (lines: string[]): Writable =>
  new Writable({
    write: (chunk, _, done) => {
      lines.push(String(chunk));
      done();
    },
  });

/** The parsed line that one call writes. */
function logged(details: object): Record<string, unknown> {
  const lines: string[] = [];
  createLogger({ name: 'test' }, collecting(lines)).info(details, 'a line');
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0]!) as Record<string, unknown>;
}

describe('a log line', () => {
  it('is one JSON object with name, level, ISO time and message', () => {
    const line = logged({ subscriptionId: 'sub_1' });
    expect(line).toMatchObject({ name: 'test', level: 'info', subscriptionId: 'sub_1' });
    expect(line['msg']).toBe('a line');
    expect(line['time']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('has every secret and personal field redacted at any depth', () => {
    expect(SECRET_FIELDS.has('cardNumber')).toBe(true);
    for (const field of SECRET_FIELDS) {
      const line = logged({ [field]: 'SECRET', a: [{ b: { [field]: { deep: 'SECRET' } } }] });
      expect(line[field]).toBe('[redacted]');
      expect(line['a']).toEqual([{ b: { [field]: '[redacted]' } }]);
    }
  });

  it('has the secret fields of a child logger redacted', () => {
    const lines: string[] = [];
    const logger = createLogger({ name: 'test' }, collecting(lines));
    logger.child({ merchantId: 'mer_1', secret: 'SECRET' }).info('a line');
    expect(JSON.parse(lines[0]!)).toMatchObject({ merchantId: 'mer_1', secret: '[redacted]' });
  });

  it('has a circular value cut off at depth five', () => {
    const cycle: Record<string, unknown> = {};
    cycle['again'] = cycle;
    expect(logged({ cycle })['cycle']).toEqual({
      again: { again: { again: { again: { again: '[cut off]' } } } },
    });
  });

  it('is not written when its level is below the logger’s level', () => {
    const lines: string[] = [];
    const logger = createLogger({ name: 'test', level: 'warn' }, collecting(lines));
    logger.info('quiet');
    logger.warn('loud');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['loud']);
  });
});
