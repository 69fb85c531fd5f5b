import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { startWebhookReceiver } from '../../scripts/client/webhook-receiver.ts';
import type { ReceivedWebhook } from '../../scripts/client/webhook-receiver.ts';
import type { Client } from '../../../client/index.ts';
import type { Random } from './random.ts';

export interface ReceiverFaults {
  /** Share of the deliveries that are answered 500. */
  readonly fails: number;
  /** Share of the other deliveries whose answer is lost after they were received. */
  readonly drops: number;
}

/** Subscribes to every event type. `hear` gets every received event. */
export async function startUnreliableReceiver(
  merchant: Client,
  random: Random,
  { fails, drops }: ReceiverFaults,
  hear: (event: ReceivedWebhook['event']) => void,
) {
  const eventSigner = `whsec_${randomBytes(24).toString('base64')}`;
  const receiver = await startWebhookReceiver({ secrets: [eventSigner] });
  let isGood = false;
  receiver.onReceive(({ event }) => {
    hear(event);
    if (isGood) return;
    if (random.isTrue(fails)) receiver.answerNext({ status: 500 });
    else if (random.isTrue(drops)) receiver.answerNext('close');
  });
  await merchant.createWebhook({
    body: { endpoint: receiver.url, eventSigner, subscribedEventTypes: [...EVENT_TYPES] },
  });
  return {
    recover: () => {
      isGood = true;
    },
    received: () => receiver.received.length,
    writeBook: (file: string) => {
      const lines = receiver.received.map(
        ({ event, answered, isStandardSignatureValid, isXpaySignatureValid }) =>
          JSON.stringify({
            eventId: event.eventId,
            eventType: event.eventType,
            isSignatureValid: isStandardSignatureValid && isXpaySignatureValid,
            isAcknowledged: answered === 200,
          }),
      );
      writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    },
    close: () => receiver.close(),
  };
}
