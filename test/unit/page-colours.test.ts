import { describe, expect, it } from 'vitest';
import { contrast } from '../../domain/branding.ts';
import { STYLE } from '../../api/pages/parts/layout.tsx';

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

/** Pairs of the colour of a field's border or of the focus ring with the colour next to it. */
const EDGES: typeof TEXTS = [
  ['soft', 'card'],
  ['bad', 'card'],
  ['action', 'card'],
  ['action', 'ground'],
  ['action', 'note-ground'],
];

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

  it('has the same names of colours as the other scheme, all but one in a checked pair, and no CSS rule has a colour without a name', () => {
    const names = Object.keys(colours).toSorted();
    expect(names).toEqual(Object.keys(LIGHT!).toSorted());
    const paired = new Set(TEXTS.flat());
    // The border of a card (`line`) has no minimum contrast: a payer finds the card by its position and headings.
    expect(names.filter((name) => !paired.has(name))).toEqual(['line']);
    // The merchant's colour and the text on it are checked when they are set.
    const used = [...STYLE.matchAll(/(?<!-)color: ([^;]+);/g)].map(([, value = '']) => value);
    expect(
      used.filter((value) => !/^(var\(--(brand-ink, var\(--)?[\w-]+\)+|inherit)$/.test(value)),
    ).toEqual([]);
    expect(STYLE.match(/#[\da-f]{3,8}\b/gi)).toHaveLength(2 * names.length);
  });
});
