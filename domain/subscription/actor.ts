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

/**
 * Who set the date of an attempt: a command, or the payer with another payment method. `retry_plan`: the plan that such
 * a payment method has ended.
 */
export type DateSetter =
  | { actor: Orderer; commandId: string }
  | { actor: 'payer' }
  | { actor: 'retry_plan' };

export function askedForBy(actor: Orderer): string {
  return `${ordererName(actor)} asked for it`;
}

export function ordererName(actor: Orderer): string {
  return actor === 'operator' ? 'an operator' : 'the merchant';
}
