import { lifeSvg } from '../../../cli/command-line/life-picture.ts';
import type { Life } from '../../../cli/command-line/life-picture.ts';
import type { ReceivedWebhook } from '../client/webhook-receiver.ts';

/** Draws a life from its webhooks, in the order of their emission. */
export function yearSvg(title: string, webhooks: readonly ReceivedWebhook[]): string {
  const events = webhooks.map(({ event }) => event);
  const changes = events
    .filter(({ eventType }) => eventType.startsWith('subscription.'))
    .map(({ eventTime, status }) => ({ at: eventTime, status: String(status) }))
    .filter(({ status }, at, all) => status !== all[at - 1]?.status);
  // The last status has no period.
  const endAt = changes.at(-1)?.at ?? 0;
  return lifeSvg(title, { changes, charges: events.flatMap(chargeOf), endAt });
}

function chargeOf({
  eventType,
  eventTime: at,
  amount,
}: ReceivedWebhook['event']): Life['charges'][number][] {
  if (eventType === 'intent.failed') return [{ at, text: 'declined', outcome: 'declined' }];
  if (eventType !== 'subscription.cycle_charged') return [];
  return [{ at, text: (Number(amount) / 100).toFixed(2), outcome: 'paid' }];
}
