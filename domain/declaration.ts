import type { CancelCommand } from './subscription/commands.ts';
import { payersCancellation } from './subscription/portal.ts';
import { cancelAt } from './subscription/state.ts';
import type { SubscriptionState } from './subscription/state.ts';

export const DECLARATION_KINDS = ['cancellation', 'withdrawal'] as const;
export type DeclarationKind = (typeof DECLARATION_KINDS)[number];

/** A contract as its receipt names it. A payment of its own cannot be cancelled. */
export interface Contract {
  readonly reference: string;
  readonly kind: 'subscription' | 'payment';
}

export const declarationKinds = ({ kind }: Contract): readonly DeclarationKind[] =>
  kind === 'subscription' ? DECLARATION_KINDS : ['withdrawal'];

/** `tell`: only the merchant's event follows. `execute`: it also ends the subscription, where the payer may end it. */
export const DECLARATION_RULES = ['tell', 'execute'] as const;
export type DeclarationRule = (typeof DECLARATION_RULES)[number];

/** `unmatched`: no contract of the merchant has this reference and this e-mail address, or several have. */
export const DECLARATION_OUTCOMES = ['executed', 'told', 'unmatched'] as const;
export type DeclarationOutcome = (typeof DECLARATION_OUTCOMES)[number];

/** Directive 2011/83/EU, Article 9; read in November 2026. */
export const WITHDRAWAL_DAYS = 14;

/** What a payer declared on the merchant's page, without login. */
export interface Declaration {
  readonly merchantId: string;
  readonly id: string;
  readonly kind: DeclarationKind;
  readonly name: string;
  readonly email: string;
  /** The number by which the payer names the contract. */
  readonly reference: string;
  /** The good cause of a cancellation; null for an ordinary one and for a withdrawal. */
  readonly reason: string | null;
  /** The day on which the payer wants the contract to end, such as `2027-03-31`; null: as early as possible. */
  readonly endOn: string | null;
}

/** The one contract that a declaration names. */
export interface NamedContract {
  /** Null for a payment without a subscription. */
  readonly state: SubscriptionState | null;
  /** When the payer agreed; null if not known, for example of an import. */
  readonly concludedAt: number | null;
  /** When it was declared; on a test clock, the clock's time. */
  readonly declaredAt: number;
  /** A cycle was paid after the declaration and before its handling. */
  readonly isPaidSince: boolean;
}

const DAY_MS = 86_400_000;
/** The last day ends in the last time zone. */
const LAST_ZONE_MS = DAY_MS / 2;

/**
 * True until the last of `days` days after the day of the contract ends, or the Monday after a weekend (Regulation
 * 1182/71, Article 3); null if the day of the contract is not known.
 */
export function isWithdrawable(
  { concludedAt, declaredAt }: Pick<NamedContract, 'concludedAt' | 'declaredAt'>,
  days: number,
): boolean | null {
  if (concludedAt === null) return null;
  let lastDay = Math.floor(concludedAt / DAY_MS) + days;
  while ([0, 6].includes(new Date(lastDay * DAY_MS).getUTCDay())) lastDay += 1;
  return declaredAt < (lastDay + 1) * DAY_MS + LAST_ZONE_MS;
}

/** True if the subscription ends already as the payer wants. */
export function endsAlready(
  { kind, reason, endOn }: Declaration,
  { state }: NamedContract,
): boolean {
  const isOrdinary = kind === 'cancellation' && reason === null && endOn === null;
  return isOrdinary && state !== null && cancelAt(state) !== null;
}

/**
 * Returns the command that executes a declaration; null if the merchant must decide. A withdrawal ends the subscription at
 * once, a cancellation with the paid period.
 */
export function commandOf(
  declaration: Declaration,
  contract: NamedContract,
  withdrawalDays: number,
): CancelCommand | null {
  const { state, declaredAt, isPaidSince } = contract;
  if (state === null || state.status === 'CREATED' || isPaidSince) return null;
  const { id: commandId, kind, reason, endOn } = declaration;
  if (kind === 'withdrawal') {
    return isWithdrawable(contract, withdrawalDays) === true
      ? { kind: 'cancel', commandId, reason: 'cancelled', actor: 'payer' }
      : null;
  }
  const isLater = endOn !== null && Date.parse(endOn) > (state.currentPeriodEndAt ?? declaredAt);
  return reason !== null || isLater ? null : payersCancellation(state, commandId);
}
