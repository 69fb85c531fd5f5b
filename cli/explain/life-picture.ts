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

interface Period {
  readonly from: Date;
  readonly to: Date;
  readonly status: string;
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

const DAY_MS = 86_400_000;
/** A period shorter than this, in ms, is drawn with this length, so that it can be seen. */
const SHORTEST_MS = 3 * DAY_MS;
/** A period shorter than this, in ms, has its status below the bar. */
const LABELLED_MS = 20 * DAY_MS;
/** More texts would overlap. */
const TEXTS_MAX = 20;

/** A bar of the statuses and a dot for each charge, hollow if it is planned. */
export function lifeSvg(title: string, life: Life): string {
  const charges = life.charges.map((charge) => ({ ...charge, at: new Date(charge.at) }));
  const commands = (life.commands ?? []).map((command) => ({
    ...command,
    at: new Date(command.at),
  }));
  const periods = periodsOf(life);
  return svgOf({
    height: commands.length === 0 ? 220 : 290,
    ariaLabel: `The statuses and charges of ${title} over time`,
    marginBottom: 60,
    marginLeft: 24,
    marginRight: 24,
    marginTop: 40,
    // Below the names of short periods.
    x: { type: 'utc', label: null, tickSize: 0, tickPadding: 22 },
    y: { axis: null, domain: ['charge', 'status', ...(commands.length === 0 ? [] : ['command'])] },
    color: { domain: Object.keys(COLOURS), range: Object.values(COLOURS) },
    marks: [
      Plot.text([title], { frameAnchor: 'top-left', dy: -28, text: String, fontSize: 14 }),
      Plot.barX(periods, {
        x1: 'from',
        x2: 'to',
        y: () => 'status',
        fill: 'status',
        insetTop: 8,
        insetBottom: 8,
      }),
      Plot.text(
        periods.filter((period) => lengthOf(period) >= LABELLED_MS),
        { x: middleOf, y: () => 'status', text: 'status', fill: 'white', fontWeight: 'bold' },
      ),
      Plot.text(
        periods.filter((period) => lengthOf(period) < LABELLED_MS),
        {
          x: 'from',
          y: () => 'status',
          dy: 36,
          text: 'status',
          fill: 'status',
          textAnchor: 'start',
        },
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
      ...(commands.length > TEXTS_MAX
        ? []
        : [0, 1].map((line) =>
            // In two lines, because neighbours would overlap.
            Plot.text(
              commands.filter((_, index) => index % 2 === line),
              { x: 'at', y: () => 'command', dy: 15 + 13 * line, text: 'text', fontSize: 11 },
            ),
          )),
      ...(charges.length > TEXTS_MAX
        ? []
        : [
            chargeTexts(charges, 'paid', -16),
            chargeTexts(charges, 'planned', -16),
            chargeTexts(charges, 'declined', 20),
          ]),
    ],
  });
}

type DrawnCharge = Omit<Charge, 'at'> & { readonly at: Date };

function chargeTexts(charges: readonly DrawnCharge[], outcome: Charge['outcome'], dy: number) {
  return Plot.text(
    charges.filter((charge) => charge.outcome === outcome),
    { x: 'at', y: () => 'charge', dy, text: 'text', fill: 'outcome', fontSize: 11 },
  );
}

/** A status lasts until the next change; the last one until the picture's end. */
function periodsOf({ changes, endAt }: Life): Period[] {
  const periods = changes.flatMap(({ at, status }, index) => {
    const until = changes[index + 1]?.at ?? endAt;
    const to = new Date(Math.max(until, at + SHORTEST_MS));
    return until <= at ? [] : [{ from: new Date(at), to, status }];
  });
  // A short period is drawn over its longer neighbours.
  return periods.toSorted((a, b) => lengthOf(b) - lengthOf(a));
}

function lengthOf({ from, to }: Period): number {
  return to.getTime() - from.getTime();
}

function middleOf({ from, to }: Period): Date {
  return new Date((from.getTime() + to.getTime()) / 2);
}
