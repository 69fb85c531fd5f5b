import * as Plot from '@observablehq/plot';
import { formatInstant } from '../../domain/calendar.ts';
import { formatAmount } from '../../domain/money.ts';
import { svgOf } from '../command-line/svg.ts';
import { cells, grouped } from '../command-line/terminal.ts';
import { sumBy } from './forecast.ts';
import type { Compared, Day, ForecastCharge, Period } from './forecast.ts';

const DAY_MS = 86_400_000;
const COLUMNS = [12, -10, -10, -10, -10, -20, -20];

interface Both {
  readonly before: readonly ForecastCharge[];
  readonly after: readonly ForecastCharge[];
}

const EMPTY: Day = { date: '', charges: 0, declined: 0, paidMinor: {} };

/** A table of weeks, and their sum: charges, declines and paid money, before and after the change. */
export function tableLines({ before, after }: Both, { fromAt }: Period): string[] {
  const week = (at: number): number => at - ((at - fromAt) % (7 * DAY_MS));
  const [weeksBefore, weeksAfter] = [sumBy(before, week), sumBy(after, week)];
  const all = (charges: readonly ForecastCharge[]): Day =>
    sumBy(charges, () => fromAt)
      .values()
      .next().value ?? EMPTY;
  const dates = [...new Set([...weeksBefore.keys(), ...weeksAfter.keys()])].toSorted();
  const head = ['week from', 'charges', 'after', 'declined', 'after', 'paid', 'after'];
  return [
    cells(COLUMNS, head).join(''),
    ...dates.flatMap((date) => rows(date, weeksBefore.get(date), weeksAfter.get(date))),
    ...rows('in all', all(before), all(after)),
  ];
}

/** One line for each currency; the counts are of all currencies. */
function rows(name: string, before: Day = EMPTY, after: Day = EMPTY): string[] {
  const currencies = new Set([...Object.keys(before.paidMinor), ...Object.keys(after.paidMinor)]);
  const counts = [before.charges, after.charges, before.declined, after.declined].map(grouped);
  const money = [...currencies]
    .toSorted()
    .map((code) =>
      [before, after].map(({ paidMinor }) => formatAmount(paidMinor[code] ?? 0, code)),
    );
  const [first = ['', ''], ...others] = money;
  return [
    cells(COLUMNS, [name, ...counts, ...first])
      .join('')
      .trimEnd(),
    ...others.map((amounts) => cells(COLUMNS, ['', '', '', '', '', ...amounts]).join('')),
  ];
}

const CSV_HEAD =
  'subscriptionId,cycle,attempt,amountMinor,currency,before,beforeOutcome,after,afterOutcome';

/** One line for each attempt. An attempt that is not made has empty fields. */
export function csvText(compared: readonly Compared[]): string {
  const dated = (charge: ForecastCharge | null): string[] =>
    charge ? [formatInstant(charge.at), charge.isPaid ? 'paid' : 'declined'] : ['', ''];
  const lines = compared.map(({ before, after }) => {
    const charge = before ?? after;
    if (!charge) return '';
    const { subscriptionId, cycleNumber, attemptNumber, amountMinor, currency } = charge;
    const fields = [subscriptionId, cycleNumber, attemptNumber, amountMinor, currency];
    return [...fields, ...dated(before), ...dated(after)].join(',');
  });
  return `${[CSV_HEAD, ...lines].join('\n')}\n`;
}

const NAMES = ['before', 'after'] as const;

const [WIDTH, HEIGHT] = [820, 170];

/** Charges a day, and the paid money of each currency a day, in major units, before and after: one plot below the other. */
export function forecastSvg({ before, after }: Both, period: Period): string {
  const day = (at: number): number => at - (at % DAY_MS);
  const points = [
    ...seriesOf('before', sumBy(before, day)),
    ...seriesOf('after', sumBy(after, day)),
  ];
  const names = [...new Set(points.map(({ series }) => series))];
  const plots = names.map((name, index) => {
    const svg = plotOf(
      name,
      points.filter(({ series }) => series === name),
      period,
    );
    return svg.replace('<svg ', `<svg y="${index * HEIGHT}" `);
  });
  const size = `width="${WIDTH}" height="${names.length * HEIGHT}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n${plots.join('')}</svg>\n`;
}

function plotOf(name: string, points: ReturnType<typeof seriesOf>, { fromAt, untilAt }: Period) {
  return svgOf({
    width: WIDTH,
    height: HEIGHT,
    ariaLabel: `${name} a day, before and after the change`,
    marginLeft: 70,
    marginRight: 24,
    marginTop: 32,
    x: { type: 'utc', label: null, domain: [new Date(fromAt), new Date(untilAt)] },
    y: { label: `${name} a day`, grid: true, zero: true },
    color: { domain: [...NAMES], range: ['#7a8794', '#c0392b'] },
    marks: [
      Plot.ruleY([0]),
      Plot.line(points, { x: 'date', y: 'value', stroke: 'when', curve: 'step', strokeWidth: 1.5 }),
      ...NAMES.map((when, index) =>
        Plot.text([{ when }], {
          frameAnchor: 'top-right',
          dx: -8 - 50 * (NAMES.length - 1 - index),
          dy: -16,
          text: 'when',
          fill: 'when',
          fontWeight: 'bold',
        }),
      ),
    ],
  });
}

function seriesOf(when: (typeof NAMES)[number], days: ReadonlyMap<string, Day>) {
  return [...days.values()]
    .toSorted((a, b) => a.date.localeCompare(b.date))
    .flatMap(({ date, charges, paidMinor }) => [
      { when, date: new Date(date), series: 'charges', value: charges },
      ...Object.entries(paidMinor).map(([code, minor]) => ({
        when,
        date: new Date(date),
        series: code,
        value: Number.parseFloat(formatAmount(minor, code)),
      })),
    ]);
}
