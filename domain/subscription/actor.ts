/**
 * The actors that can cause a change of a subscription. `operator`: staff of the service, by a signal in the
 * Temporal Web UI or by the decision of a manual review. `schedule`: a date was reached, such as a billing
 * date or the end of the checkout.
 */
export const ACTORS = [
  'merchant',
  'operator',
  'payer',
  'schedule',
  'retry_plan',
  'gateway',
] as const;
export type Actor = (typeof ACTORS)[number];

/** The actors that may order a change by a command. */
export type Orderer = Extract<Actor, 'merchant' | 'operator'>;

/** Returns the reason of a change that a command made, for the timeline: `the merchant asked for it`. */
export function askedForBy(actor: Orderer): string {
  return `${actor === 'operator' ? 'an operator' : 'the merchant'} asked for it`;
}
