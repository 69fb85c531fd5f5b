/** `operator`: staff, by a signal in the Web UI or a manual review. `schedule`: a date was reached. */
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

export function askedForBy(actor: Orderer): string {
  return `${actor === 'operator' ? 'an operator' : 'the merchant'} asked for it`;
}
