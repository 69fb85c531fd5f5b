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
export const ORDERERS = ['merchant', 'operator', 'payer'] as const;
export type Orderer = (typeof ORDERERS)[number];

export function askedForBy(actor: Orderer): string {
  return `${ordererName(actor)} asked for it`;
}

export function ordererName(actor: Orderer): string {
  return { merchant: 'the merchant', operator: 'an operator', payer: 'the payer' }[actor];
}
