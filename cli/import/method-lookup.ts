import { setTimeout as pause } from 'node:timers/promises';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import type { MethodLookup, PaymentGateway, SavedCard } from '../../gateways/port.ts';
import type { ReadImport } from './fields.ts';

/** Delays in ms before each repeat of a look-up that got no answer. */
const REPEAT_AFTER_MS = [500, 1_000, 2_000, 4_000];
/** After this number of successive lines without an answer the import ends: the gateway is unreachable. */
const UNANSWERED_MAX = 20;
const BAD_CREDENTIALS = [401, 403];

/** Reads the card of a line's method, or returns the line's problem. Throws for bad credentials or a silent gateway. */
export function createMethodLookup(gateway: PaymentGateway) {
  const { name } = gateway;
  let unanswered = 0;
  return async (given: ReadImport): Promise<SavedCard | string> => {
    const outcome = await untilAnswered(() => gateway.lookupMethod(given.gatewayMethodId));
    unanswered = outcome.kind === 'unknown' ? unanswered + 1 : 0;
    if (unanswered >= UNANSWERED_MAX && outcome.kind === 'unknown') {
      throw new Error(
        `The gateway ${name} does not answer: ${outcome.reason}. Import again later.`,
      );
    }
    const isOfCustomer =
      outcome.kind === 'found' && outcome.card.gatewayMethodId === given.gatewayMethodId;
    if (isOfCustomer) return outcome.card;
    if (outcome.kind === 'unknown') return `the gateway did not answer: ${outcome.reason}`;
    return `gatewayMethodId: ${name} has no card ${given.gatewayMethodId}`;
  };
}

async function untilAnswered(lookup: () => Promise<MethodLookup>): Promise<MethodLookup> {
  for (const delayMs of REPEAT_AFTER_MS) {
    const outcome = await once(lookup);
    if (outcome.kind !== 'unknown') return outcome;
    await pause(delayMs);
  }
  return once(lookup);
}

/** A refused request counts as a removed method: the problem of one line. Throws for refused credentials. */
async function once(lookup: () => Promise<MethodLookup>): Promise<MethodLookup> {
  try {
    return await lookup();
  } catch (error) {
    const isOfOneLine =
      error instanceof GatewayRejectedRequest && !BAD_CREDENTIALS.includes(error.status);
    if (isOfOneLine) return { kind: 'removed' };
    throw error;
  }
}
