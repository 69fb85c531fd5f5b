import { setTimeout as sleep } from 'node:timers/promises';
import { STORED_500_HEADER } from '../../stripe-double/api.ts';
import type { DoubleControl } from '../../scripts/client/double-control.ts';
import { grouped } from '../../../cli/command-line/terminal.ts';
import { FAULT_COUNT } from './gateway-faults.ts';
import type { Figure, GatewayFaults } from './gateway-faults.ts';
import type { Random } from './random.ts';

const CREATE = { method: 'POST', path: '/v1/payment_intents' } as const;
const CONFIRM = { method: 'POST', path: '/v1/payment_intents/*/confirm' } as const;
const LOOKUP = { method: 'GET', path: '/v1/payment_intents/*' } as const;
const REFUND = { method: 'POST', path: '/v1/refunds' } as const;
const CARD_PAGE = { method: 'POST', path: '/v1/checkout/sessions' } as const;

const stored500 = (effect: 'done' | 'none') =>
  ({ fault: 'add_headers', headers: { [STORED_500_HEADER]: effect } }) as const;
const refusal = (status: number, code: string) =>
  ({
    fault: 'answer',
    status,
    body: { error: { type: 'invalid_request_error', code, message: 'by order of the chaos run' } },
  }) as const;

/** A request gets the first fault whose chance hits. The worker waits 5 s: less than a delay of 6 s. */
const FAULTS: readonly (readonly [name: string, fault: Readonly<Record<string, unknown>>])[] = [
  ['confirm: answer lost', { ...CONFIRM, fault: 'lose_answer', chance: 0.1 }],
  ['confirm: request lost', { ...CONFIRM, fault: 'lose_request', chance: 0.03 }],
  ['confirm: 500 after the charge', { ...CONFIRM, ...stored500('done'), chance: 0.04 }],
  ['confirm: 500 without the charge', { ...CONFIRM, ...stored500('none'), chance: 0.02 }],
  ['confirm: reset after the charge', { ...CONFIRM, fault: 'reset', effect: 'done', chance: 0.03 }],
  ['confirm: reset before the charge', { ...CONFIRM, fault: 'reset', chance: 0.02 }],
  ['confirm: hangs after the charge', { ...CONFIRM, fault: 'hang', effect: 'done', chance: 0.02 }],
  ['confirm: hangs before the charge', { ...CONFIRM, fault: 'hang', chance: 0.01 }],
  ['confirm: arrives after 6 s', { ...CONFIRM, fault: 'delay', delayMs: 6_000, chance: 0.03 }],
  ['confirm: 409', { ...CONFIRM, ...refusal(409, 'idempotency_key_in_use'), chance: 0.02 }],
  ['create: answer lost', { ...CREATE, fault: 'lose_answer', chance: 0.04 }],
  ['create: 500 after the effect', { ...CREATE, ...stored500('done'), chance: 0.02 }],
  ['create: reset', { ...CREATE, fault: 'reset', chance: 0.02 }],
  ['look-up: 500', { ...LOOKUP, ...refusal(500, 'api_error'), chance: 0.05 }],
  ['look-up: hangs', { ...LOOKUP, fault: 'hang', chance: 0.01 }],
  ['refund: answer lost', { ...REFUND, fault: 'lose_answer', chance: 0.1 }],
  ['refund: reset after the refund', { ...REFUND, fault: 'reset', effect: 'done', chance: 0.05 }],
  ['refund: hangs after the refund', { ...REFUND, fault: 'hang', effect: 'done', chance: 0.04 }],
  ['refund: request lost', { ...REFUND, fault: 'lose_request', chance: 0.05 }],
  ['refund: stored 500 after the refund', { ...REFUND, ...stored500('done'), chance: 0.1 }],
  ['card page: answer lost', { ...CARD_PAGE, fault: 'lose_answer', chance: 0.05 }],
  ['card page: 500', { ...CARD_PAGE, ...refusal(500, 'api_error'), chance: 0.03 }],
];

/** One storm: for 2 s the proxy answers every request with 429, as Stripe does above its rate limit. */
const STORM = { ...refusal(429, 'rate_limit'), count: FAULT_COUNT, forMs: 2_000 };
/** Range of the wait between two storms, in ms. */
const BETWEEN_STORMS = [10_000, 25_000] as const;
/** Range of the wait between two orders of a decline, in ms. More often, they would hit most charges. */
const BETWEEN_DECLINES = [2_000, 8_000] as const;
/** Range of the wait between two event faults, in ms. */
const BETWEEN_EVENT_FAULTS = [500, 2_500] as const;
const DECLINE = { kind: 'decline', code: 'card_declined', declineCode: 'insufficient_funds' };
const EVENT_ACTIONS = ['drop', 'duplicate', 'before_answer'] as const;

/** The faults of the Stripe double and of the proxy in front of it. `merchantId`: the demo merchant. */
export function stripeFaults(
  double: DoubleControl,
  random: Random,
  merchantId: string,
): GatewayFaults {
  const enough = new AbortController();
  let orders: Promise<unknown> = Promise.resolve();
  const ordered = { declines: 0, storms: 0, events: 0 };
  /** Repeats `step` after random waits. The double may fail while Postgres is down; then a step has no effect. */
  const keep = async (wait: readonly [number, number], step: () => Promise<void>) => {
    while (!enough.signal.aborted) {
      await step().catch(() => undefined);
      const ms = random.between(...wait);
      await sleep(ms, undefined, { signal: enough.signal }).catch(() => undefined);
    }
  };
  return {
    begin: async () => {
      for (const [, fault] of FAULTS) await double.addFault({ ...fault, count: FAULT_COUNT });
      orders = Promise.all([
        keep(BETWEEN_STORMS, async () => {
          await double.addFault(STORM);
          ordered.storms += 1;
        }),
        keep(BETWEEN_DECLINES, async () => {
          await double.order('outcomes', { ...DECLINE, count: 1, metadata: { merchantId } });
          ordered.declines += 1;
        }),
        keep(BETWEEN_EVENT_FAULTS, async () => {
          const count = random.between(1, 4);
          await double.order('events', { action: random.pick(EVENT_ACTIONS), count });
          ordered.events += count;
        }),
      ]);
    },
    end: async () => {
      enough.abort();
      await orders;
      const faults = await double.faults();
      await double.clearFaults();
      const storms = faults.slice(FAULTS.length).reduce((sum, { hits }) => sum + hits, 0);
      return [
        ...FAULTS.map(([name], at): Figure => [`Stripe, ${name}`, grouped(faults[at]?.hits ?? 0)]),
        [`Stripe, 429 in ${ordered.storms} storms`, grouped(storms)],
        ['Stripe, declines ordered', grouped(ordered.declines)],
        ['Stripe, events dropped, sent twice or sent early (ordered)', grouped(ordered.events)],
      ];
    },
  };
}
