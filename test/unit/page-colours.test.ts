import { describe, expect, it } from 'vitest';
import { STYLE } from '../../page-parts/style.ts';

type Colours = Readonly<Record<string, string>>;

/** The colours of each scheme, by name. */
const [LIGHT, DARK] = [...STYLE.matchAll(/:root \{([^}]*)\}/g)].map(([, block = '']): Colours =>
  Object.fromEntries(
    [...block.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name, colour]) => [name, colour]),
  ),
);

/** Each colour of text with every colour behind it. */
const TEXTS: readonly (readonly [text: string, ground: string])[] = [
  ['ink', 'ground'],
  ['ink', 'card'],
  ['soft', 'card'],
  ['action', 'card'],
  ['action-ink', 'action'],
  ['bad', 'card'],
  ['bad', 'bad-ground'],
  ['note', 'note-ground'],
];

/** The edges of fields, and the ring around the focus, which must differ from what is beside them. */
const EDGES: typeof TEXTS = [
  ['soft', 'card'],
  ['bad', 'card'],
  ['action', 'card'],
  ['action', 'ground'],
  ['action', 'note-ground'],
];

/** Relative luminance and contrast as WCAG 2.2 defines them. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** The pairs whose contrast is below `least`. */
const tooWeak = (colours: Colours, pairs: typeof TEXTS, least: number) =>
  pairs.flatMap(([one, other]) => {
    const ratio = contrast(colours[one]!, colours[other]!);
    return ratio >= least ? [] : [`${one} on ${other}: ${ratio.toFixed(2)}`];
  });

describe.each([
  ['light', LIGHT!],
  ['dark', DARK!],
] as const)('the %s scheme of the hosted pages', (_, colours) => {
  it('gives every text a contrast of at least 4.5', () => {
    expect(tooWeak(colours, TEXTS, 4.5)).toEqual([]);
  });

  it('gives the edges of fields and the focus ring a contrast of at least 3', () => {
    expect(tooWeak(colours, EDGES, 3)).toEqual([]);
  });

  it('has the same colours as the other scheme, each in a pair, and no colour elsewhere', () => {
    const names = Object.keys(colours).toSorted();
    expect(names).toEqual(Object.keys(LIGHT!).toSorted());
    const paired = new Set(TEXTS.flat());
    // The edge of a card is decoration: the card is told by its place and its headings.
    expect(names.filter((name) => !paired.has(name))).toEqual(['line']);
    // The merchant's colour and the text on it are checked when they are set.
    const used = [...STYLE.matchAll(/(?<!-)color: ([^;]+);/g)].map(([, value = '']) => value);
    expect(
      used.filter((value) => !/^(var\(--(brand-ink, var\(--)?[\w-]+\)+|inherit)$/.test(value)),
    ).toEqual([]);
    expect(STYLE.match(/#[\da-f]{3,8}\b/gi)).toHaveLength(2 * names.length);
  });
});

it('the contrast of black on white is 21, and that of #767676 on white 4.54', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 5);
  expect(contrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2);
});
