import * as Plot from '@observablehq/plot';
import { svgOf } from '../../scripts/client/svg.ts';

export interface LatenessPlot {
  readonly title: string;
  readonly months: readonly (readonly number[])[];
}

/** Returns an SVG plot of the number of charged subscriptions over the time since the due time. */
export function latenessSvg({ title, months }: LatenessPlot): string {
  const points = months.flatMap((seconds, index) => [
    { month: monthName(index), seconds: 0, charged: 0 },
    ...seconds.map((late, at) => ({
      month: monthName(index),
      seconds: late,
      charged: at + 1,
    })),
  ]);
  return svgOf({
    height: 420,
    marginLeft: 60,
    marginTop: 72,
    marginRight: 24,
    x: { label: 'seconds after the due time', grid: true, zero: true },
    y: { label: 'subscriptions charged', grid: true, zero: true },
    color: { type: 'categorical', scheme: 'tableau10' },
    marks: [
      Plot.text([title], {
        frameAnchor: 'top-left',
        dy: -34,
        text: (text: string) => text,
        fontSize: 14,
      }),
      Plot.ruleY([0]),
      Plot.line(points, {
        x: 'seconds',
        y: 'charged',
        stroke: 'month',
        curve: 'step-after',
        strokeWidth: 2,
      }),
      ...months.map((_, index) =>
        Plot.text([{ month: monthName(index) }], {
          frameAnchor: 'bottom-right',
          dx: -10,
          dy: -10 - 18 * (months.length - 1 - index),
          text: 'month',
          fill: 'month',
          fontWeight: 'bold',
        }),
      ),
    ],
  });
}

function monthName(index: number): string {
  return `month ${index + 1}`;
}
