import { describe, expect, it } from 'vitest';
import { lifeSvg } from '../../cli/explain/life-picture.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';

const DAY = 86_400_000;
const START = Date.parse('2027-01-31T12:00:00Z');
const after = (days: number) => START + days * DAY;

/** Twelve attempts in a month, twelve commands in six weeks, and five statuses in two weeks. */
const DENSE = {
  changes: [
    { at: after(0), status: 'CREATED' },
    { at: after(1), status: 'TRIALING' },
    { at: after(4), status: 'ACTIVE' },
    { at: after(8), status: 'UNPAID' },
    { at: after(11), status: 'PAUSED' },
    { at: after(14), status: 'ACTIVE' },
  ],
  charges: [
    ...Array.from({ length: 12 }, (_, index) => ({
      at: after(4 + 2.5 * index),
      text: index % 3 === 2 ? '1,999.00' : 'declined',
      outcome: index % 3 === 2 ? ('paid' as const) : ('declined' as const),
    })),
    { at: after(380), text: '1,999.00', outcome: 'planned' as const },
  ],
  commands: Array.from({ length: 12 }, (_, index) => ({
    at: after(4 + 3.5 * index),
    text: index % 2 === 0 ? 'cancel at period end' : 'edit',
  })),
  endAt: after(400),
};

describe.skipIf(chromiumMissing() !== null)('the picture of a life, in a browser,', () => {
  it.for([
    ['commands', DENSE],
    ['no commands', { ...DENSE, commands: [] }],
  ] as const)(
    'has no two texts that overlap, and none outside, with %s [D-§7]',
    async ([, life]) => {
      const browser = await launchChromium();
      try {
        const page = await browser.newPage({ viewport: { width: 900, height: 400 } });
        await page.setContent(`<body style="margin: 0">${lifeSvg('Garden Letters', life)}</body>`);
        const texts = await page.locator('svg text').evaluateAll((all) =>
          all.map((each) => {
            const { left, right, top, bottom } = each.getBoundingClientRect();
            return { text: each.textContent, left, right, top, bottom };
          }),
        );
        const overlaps = texts.flatMap((one, index) =>
          texts
            .slice(index + 1)
            .filter(
              (other) =>
                one.left < other.right &&
                other.left < one.right &&
                one.top + 2 < other.bottom &&
                other.top + 2 < one.bottom,
            )
            .map((other) => `${one.text} / ${other.text}`),
        );
        expect(overlaps).toEqual([]);
        expect(texts.filter(({ left, right }) => left < 0 || right > 820)).toEqual([]);
        for (const text of ['Garden Letters', 'declined', '1,999.00', 'TRIALING', 'ACTIVE']) {
          expect(texts.map((each) => each.text)).toContain(text);
        }
      } finally {
        await browser.close();
      }
    },
  );
});
