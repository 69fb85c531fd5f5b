import { describe, expect, it } from 'vitest';
import { COUNTRY_CODES, isCountryCode } from '../../domain/countries.ts';

describe('the table of country codes', () => {
  it('has 249 different two-letter codes in alphabetical order [D-11]', () => {
    const codes = [...COUNTRY_CODES];
    expect(codes.length).toBe(249);
    expect(codes).toEqual(codes.toSorted());
    expect(codes.every((code) => /^[A-Z]{2}$/.test(code))).toBe(true);
  });

  it.each(['US', 'GB', 'DE', 'IN', 'AX', 'BQ', 'SS', 'TL', 'ZW'])('accepts %s [D-11]', (code) => {
    expect(isCountryCode(code)).toBe(true);
  });

  it.each([
    'us',
    'USA',
    'UK',
    'EU',
    'XK',
    'AN',
    'SU',
    'ZZ',
    '',
    ' US',
    '840',
    840,
    null,
    undefined,
  ])('refuses %j, which is no assigned alpha-2 code [D-11]', (value) => {
    expect(isCountryCode(value)).toBe(false);
  });
});
