import * as Plot from '@observablehq/plot';
import { svgOf } from '../../../cli/command-line/svg.ts';
import type postgres from 'postgres';
import { KILL_KINDS } from './killer.ts';
import type { Kill } from './killer.ts';

export interface PlottedCharge {
  readonly sentAfter: number;
  /** The time from the first send of the charge to its recorded outcome. */
  readonly took: number;
}

export interface ChargesPlot {
  readonly title: string;
  readonly charges: readonly PlottedCharge[];
  readonly kills: readonly { readonly kind: string; readonly after: number }[];
}

/** A charge that took less than this, in seconds, is drawn at this value, because the axis is logarithmic. */
const SHORTEST = 0.01;

/** Returns an SVG plot: one dot for each charge, one vertical line for each kill or freeze of a process. */
export function chargesSvg({ title, charges, kills }: ChargesPlot): string {
  const dots = charges.map(({ sentAfter, took }) => ({
    sentAfter,
    took: Math.max(SHORTEST, took),
  }));
  const slowest = Math.max(1, ...dots.map(({ took }) => took));
  const longest = 10 ** Math.ceil(Math.log10(slowest));
  return svgOf({
    height: 380,
    marginLeft: 60,
    marginTop: 76,
    marginBottom: 40,
    marginRight: 24,
    x: { label: 'seconds since the start of the run', labelAnchor: 'center', labelArrow: false },
    y: {
      label: null,
      type: 'log',
      grid: true,
      domain: [SHORTEST, longest],
      ticks: [0.01, 0.1, 1, 10, 100, 1_000].filter((seconds) => seconds <= longest),
      tickFormat: (seconds: number) => String(seconds),
    },
    color: { domain: KILL_KINDS, scheme: 'tableau10', legend: false },
    marks: [
      Plot.text([title], { frameAnchor: 'top-left', dy: -62, text: String, fontSize: 14 }),
      Plot.text(['Each dot: the seconds from the send of a charge to its recorded outcome.'], {
        frameAnchor: 'top-left',
        dy: -42,
        text: String,
      }),
      Plot.text(['Each line: a kill or freeze of'], {
        frameAnchor: 'top-left',
        dy: -22,
        text: String,
      }),
      Plot.ruleX(kills, { x: 'after', stroke: 'kind', strokeOpacity: 0.7 }),
      Plot.dot(dots, { x: 'sentAfter', y: 'took', r: 1.6, fill: 'black', fillOpacity: 0.5 }),
      ...KILL_KINDS.map((kind, index) =>
        Plot.text([{ kind }], {
          frameAnchor: 'top-left',
          dx: 172 + index * 72,
          dy: -22,
          text: 'kind',
          fill: 'kind',
          fontWeight: 'bold',
        }),
      ),
    ],
  });
}

/** Reads the charges with an outcome from the database of a run that started at `startedAt` (epoch ms). */
export async function readCharges(
  sql: postgres.Sql,
  startedAt: number,
  kills: readonly Kill[],
): Promise<Omit<ChargesPlot, 'title'>> {
  const rows = await sql<{ sent_after: number; took: number }[]>`
    select extract(epoch from sent_at[1] - ${new Date(startedAt)})::float8 as sent_after,
      extract(epoch from settled_at - sent_at[1])::float8 as took
    from payment_attempt
    where settled_at is not null
    order by sent_at[1]`;
  return {
    charges: rows.map(({ sent_after: sentAfter, took }) => ({ sentAfter, took })),
    kills: kills.map(({ kind, at }) => ({ kind, after: (at - startedAt) / 1_000 })),
  };
}
