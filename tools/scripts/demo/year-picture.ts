import * as Plot from '@observablehq/plot';
import { svgOf } from '../client/svg.ts';
import type { ReceivedWebhook } from '../client/webhook-receiver.ts';

interface Charge {
  readonly at: Date;
  readonly text: string;
  readonly outcome: 'paid' | 'declined';
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
};

const DAY_MS = 86_400_000;
/** A period shorter than this, in ms, is drawn with this length, so that it can be seen. */
const SHORTEST_MS = 3 * DAY_MS;
/** A period shorter than this, in ms, has its status below the bar. */
const LABELLED_MS = 20 * DAY_MS;

/** A bar of the statuses and a dot for each charge, from webhooks in the order of their emission. */
export function lifeSvg(title: string, webhooks: readonly ReceivedWebhook[]): string {
  const events = webhooks.map(({ event }) => event);
  const charges = events.flatMap(chargeOf);
  const periods = periodsOf(events);
  return svgOf({
    height: 220,
    marginBottom: 50,
    marginLeft: 24,
    marginRight: 24,
    marginTop: 40,
    x: { type: 'utc', label: null },
    y: { axis: null, domain: ['charge', 'status'] },
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
      Plot.dot(charges, { x: 'at', y: () => 'charge', r: 6, fill: 'outcome' }),
      chargeTexts(charges, 'paid', -16),
      chargeTexts(charges, 'declined', 20),
    ],
  });
}

function chargeTexts(charges: readonly Charge[], outcome: Charge['outcome'], dy: number) {
  return Plot.text(
    charges.filter((charge) => charge.outcome === outcome),
    { x: 'at', y: () => 'charge', dy, text: 'text', fill: 'outcome', fontSize: 11 },
  );
}

function chargeOf({ eventType, eventTime, amount }: ReceivedWebhook['event']): Charge[] {
  const at = new Date(eventTime);
  if (eventType === 'intent.failed') return [{ at, text: 'declined', outcome: 'declined' }];
  if (eventType !== 'subscription.cycle_charged') return [];
  return [{ at, text: (Number(amount) / 100).toFixed(2), outcome: 'paid' }];
}

/** A status lasts until the next `subscription.*` event with another. The last status has no period. */
function periodsOf(events: readonly ReceivedWebhook['event'][]): Period[] {
  const changes = events
    .filter(({ eventType }) => eventType.startsWith('subscription.'))
    .map(({ eventTime, status }) => ({ at: eventTime, status: String(status) }))
    .filter(({ status }, at, all) => status !== all[at - 1]?.status);
  const periods = changes.flatMap(({ at, status }, index) => {
    const until = changes[index + 1]?.at ?? at;
    const to = new Date(Math.max(until, at + SHORTEST_MS));
    return until === at ? [] : [{ from: new Date(at), to, status }];
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
