/**
 * Who caused a change of a subscription. `operator`: a person of the service, in the Temporal Web UI or by the
 * decision of a manual review. `schedule`: a date came, such as a billing date or the end of the checkout.
 * Rule: D-34.
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

/** Who may order a change by a command. */
export type Orderer = Extract<Actor, 'merchant' | 'operator'>;

/** Returns the reason of a change that a command made, for the timeline: `the merchant asked for it`. */
export function askedForBy(actor: Orderer): string {
  return `${actor === 'operator' ? 'an operator' : 'the merchant'} asked for it`;
}
