import * as Plot from '@observablehq/plot';
import { svgOf } from '../command-line/svg.ts';

export interface Life {
  /** Each change of the status, oldest first. */
  readonly changes: readonly { readonly at: number; readonly status: string }[];
  readonly charges: readonly Charge[];
  /** What the merchant or the payer ordered. Absent: no row for it. */
  readonly commands?: readonly { readonly at: number; readonly text: string }[];
  readonly endAt: number;
}

interface Charge {
  readonly at: number;
  readonly text: string;
  /** `planned`: not made yet. */
  readonly outcome: 'paid' | 'declined' | 'planned';
}

interface Period extends Text {
  readonly from: Date;
  readonly to: Date;
}

const COLOURS: Readonly<Record<string, string>> = {
  CREATED: '#9aa5b1',
  TRIALING: '#5b8def',
  ACTIVE: '#2e9e5b',
  UNPAID: '#d9822b',
  PAUSED: '#8a63d2',
  paid: '#1c7a43',
  declined: '#c0392b',
  planned: '#4a5560',
  ENDED: '#5f6b76',
};

const COMMAND_COLOUR = '#4a5560';

const WIDTH = 820;
/** Room for half of the longest text beside the first and the last instant. */
const MARGIN = 60;
/** Average width in px of a character. */
const CHARACTER_PX = 6.2;
const BOLD_CHARACTER_PX = 9;
/** A shorter period is drawn with this length in px, so that it can be seen. */
const SHORTEST_PX = 3.5;

/** A bar of the statuses and a dot for each charge, hollow if it is planned. A text that has no room is left out. */
export function lifeSvg(title: string, life: Life): string {
  const charges = life.charges.map((charge) => ({ ...charge, at: new Date(charge.at) }));
  const commands = (life.commands ?? []).map((command) => ({
    ...command,
    at: new Date(command.at),
  }));
  const from = life.changes[0]?.at ?? 0;
  const pixelsPerMs = (WIDTH - 2 * MARGIN) / (life.endAt - from);
  const periods = periodsOf(life, SHORTEST_PX / pixelsPerMs);
  const isLong = (period: Period) =>
    lengthOf(period) * pixelsPerMs > period.text.length * BOLD_CHARACTER_PX;
  const texts = (shown: readonly Text[], y: string, lines: readonly number[], fill?: string) =>
    textMarks(inLines(shown, lines.length, pixelsPerMs), y, lines, fill);
  const isDeclined = ({ outcome }: { outcome: string }) => outcome === 'declined';
  return svgOf({
    width: WIDTH,
    height: commands.length === 0 ? 220 : 290,
    ariaLabel: `The statuses and charges of ${title} over time`,
    marginBottom: 60,
    marginLeft: MARGIN,
    marginRight: MARGIN,
    marginTop: 40,
    // Below the names of short periods, and the third line of the commands.
    x: { type: 'utc', label: null, tickSize: 0, tickPadding: 28, domain: [from, life.endAt] },
    y: { axis: null, domain: ['charge', 'status', ...(commands.length === 0 ? [] : ['command'])] },
    color: { domain: Object.keys(COLOURS), range: Object.values(COLOURS) },
    marks: [
      Plot.text([title], { frameAnchor: 'top-left', dy: -28, text: String, fontSize: 14 }),
      Plot.barX(periods, {
        x1: 'from',
        x2: 'to',
        y: () => 'status',
        fill: 'text',
        insetTop: 8,
        insetBottom: 8,
      }),
      Plot.text(periods.filter(isLong), {
        x: 'at',
        y: () => 'status',
        text: 'text',
        fill: 'white',
        fontWeight: 'bold',
      }),
      ...texts(
        periods.filter((period) => !isLong(period)),
        'status',
        [36, 49],
        'text',
      ),
      Plot.dot(
        charges.filter(({ outcome }) => outcome !== 'planned'),
        { x: 'at', y: () => 'charge', r: 6, fill: 'outcome' },
      ),
      Plot.dot(
        charges.filter(({ outcome }) => outcome === 'planned'),
        { x: 'at', y: () => 'charge', r: 6, stroke: 'outcome', strokeDasharray: '3 2' },
      ),
      Plot.dot(commands, {
        x: 'at',
        y: () => 'command',
        r: 5,
        symbol: 'diamond2',
        fill: COMMAND_COLOUR,
      }),
      ...texts(commands, 'command', [15, 28, 41]),
      ...texts(
        charges.filter((charge) => !isDeclined(charge)),
        'charge',
        [-16, -29],
        'outcome',
      ),
      ...texts(charges.filter(isDeclined), 'charge', [18, 31], 'outcome'),
    ],
  });
}

interface Text {
  /** The middle of the text. */
  readonly at: Date;
  readonly text: string;
}

/** Puts each text into the first line where it overlaps no earlier one. Leaves out a text that no line has room for. */
function inLines(
  texts: readonly Text[],
  count: number,
  pixelsPerMs: number,
): readonly (readonly Text[])[] {
  const lines = Array.from({ length: count }, () => ({ end: -Infinity, texts: [] as Text[] }));
  for (const text of texts.toSorted((a, b) => a.at.getTime() - b.at.getTime())) {
    const half = (text.text.length * CHARACTER_PX) / 2;
    const middle = text.at.getTime() * pixelsPerMs;
    const line = lines.find(({ end }) => end < middle - half);
    if (line === undefined) continue;
    line.end = middle + half;
    line.texts.push(text);
  }
  return lines.map(({ texts: placed }) => placed);
}

/** `offsets`: the distance of each line from the row `y` in px. */
function textMarks(
  lines: readonly (readonly Text[])[],
  y: string,
  offsets: readonly number[],
  fill?: string,
) {
  return lines.map((texts, index) =>
    Plot.text(texts, {
      x: 'at',
      y: () => y,
      dy: offsets[index] ?? 0,
      text: 'text',
      fontSize: 11,
      ...(fill !== undefined && { fill }),
    }),
  );
}

/** A status lasts until the next change, and at least `shortestMs`; the last one until the picture's end. */
function periodsOf({ changes, endAt }: Life, shortestMs: number): Period[] {
  const periods = changes.flatMap(({ at, status }, index) => {
    const until = changes[index + 1]?.at ?? endAt;
    const to = new Date(Math.min(Math.max(until, at + shortestMs), endAt));
    return until <= at
      ? []
      : [{ from: new Date(at), to, at: new Date((at + to.getTime()) / 2), text: status }];
  });
  // A short period is drawn over its longer neighbours.
  return periods.toSorted((a, b) => lengthOf(b) - lengthOf(a));
}

function lengthOf({ from, to }: Period): number {
  return to.getTime() - from.getTime();
}
