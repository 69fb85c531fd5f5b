import { describe, expect, it } from 'vitest';
import {
  brandUrlProblem,
  colourProblem,
  contrast,
  inkOn,
  usableBranding,
} from '../../domain/branding.ts';

describe('the contrast', () => {
  it.each([
    ['#000000', '#ffffff', '21.00'],
    ['#ffffff', '#767676', '4.54'],
    ['#777777', '#ffffff', '4.48'],
    ['#ff0000', '#ffffff', '4.00'],
    ['#1f4fd8', '#1f4fd8', '1.00'],
  ])('between %s and %s is %s, as in WCAG 2.2', (one, other, ratio) => {
    expect(contrast(one, other).toFixed(2)).toBe(ratio);
    expect(contrast(other, one).toFixed(2)).toBe(ratio);
  });
});

describe('the colour of buttons', () => {
  it.each([
    ['#000000', '#ffffff'],
    ['#1f4fd8', '#ffffff'],
    ['#767676', '#ffffff'],
    ['#7F8C8D', '#0d1526'],
    ['#ffcc00', '#0d1526'],
    ['#ffffff', '#0d1526'],
  ])('%s has text in %s', (colour, ink) => {
    expect(colourProblem(colour)).toBeNull();
    expect(inkOn(colour)).toBe(ink);
  });

  it.each(['#797979', '#7A7A7A', '#7b7b7b'])(
    '%s is refused with its contrast, because it is below 4.5 with the white and with the dark text [D-§7]',
    (colour) => {
      expect(colourProblem(colour)).toMatch(
        /^"#\w{6}" has a contrast of only 4\.\d\d with the button’s text, which is #ffffff or #0d1526; it needs 4\.5: take a darker or a lighter colour$/,
      );
    },
  );

  it.each(['', 'red', '#fff', '1f4fd8', '#1f4fd8;', '#1f4fg8', '#1f4fd800', 'url(#a)', 'none'])(
    '%j is refused, because it is not #rrggbb',
    (colour) => {
      expect(colourProblem(colour)).toBe(`"${colour}" is not a colour like #1f4fd8`);
    },
  );
});

describe('a URL of a merchant’s logo, terms or support', () => {
  it.each([
    'https://shop.example',
    'https://shop.example:8443/a%20b/logo.svg?v=2#x',
    'https://SHOP_1.example./logo.png',
    'https://bücher.example/ü.png',
    'https://192.0.2.1/logo.png',
    'https://[2001:db8::1]:8443/logo.png',
  ])('%s is accepted', (url) => expect(brandUrlProblem(url)).toBeNull());

  it.each([
    '',
    'shop.example/logo.png',
    'http://shop.example/logo.png',
    'javascript:alert(1)',
    'data:image/png;base64,AA==',
    'https://',
    'https://me:secret@shop.example/logo.png',
    'https://me@shop.example/logo.png',
    'https://a;script-src/x.png',
    "https://a'self'/x.png",
    'https://a,b/x.png',
    'https://shop.example/a\nb.png',
    'https://shop.example/\u001b[31m.png',
    `https://shop.example/${'a'.repeat(2_028)}`,
  ])('%s is refused', (url) => {
    expect(brandUrlProblem(url)).toContain(' is not an https URL of at most 2048 characters');
  });

  it('may have 2,048 code points of two UTF-16 units [IF-8]', () => {
    const url = (count: number) => `https://a.example/${'𠮷'.repeat(count)}`;
    expect(brandUrlProblem(url(2_030))).toBeNull();
    expect(brandUrlProblem(url(2_031))).toContain(
      ' is not an https URL of at most 2048 characters',
    );
  });
});

it('a page gets only the usable values of a stored branding', () => {
  const logoUrl = 'https://shop.example/logo.png';
  expect(usableBranding({ logoUrl, colour: 'red;}', termsUrl: 'javascript:alert(1)' })).toEqual({
    logoUrl,
  });
  expect(usableBranding({ colour: '#ffcc00' })).toEqual({ colour: '#ffcc00' });
  expect(usableBranding({})).toEqual({});
});
