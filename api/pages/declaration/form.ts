import type { DeclarationKind } from '../../../domain/declaration.ts';
import { hasAtMost, isStorable } from '../../../domain/storable-text.ts';
import { hasProblem, readDetails } from '../shared/details-form.ts';
import type { Typed } from '../shared/details-form.ts';

export const DECLARED = ['name', 'email', 'reference'] as const;
type Declared = (typeof DECLARED)[number];

type ReasonProblem = 'reasonMissing' | 'reasonUnneeded';

/** What a payer typed. The problems are keys of texts. */
export interface DeclarationForm {
  readonly fields: ReadonlyMap<Declared, Typed>;
  readonly isForCause: boolean;
  readonly reason: { readonly value: string; readonly problem: ReasonProblem | null };
  readonly endOn: { readonly value: string; readonly problem: 'endOnWrong' | null };
}

const REASON_MAX = 1_000;

/** Of a withdrawal only the first three fields are read. */
export function readDeclaration(form: URLSearchParams, kind: DeclarationKind): DeclarationForm {
  const isCancellation = kind === 'cancellation';
  const isForCause = isCancellation && form.get('kind') === 'cause';
  const typed = (form.get('reason') ?? '').replaceAll('\r\n', '\n').trim();
  const reason = isCancellation ? typed : '';
  const endOn = isCancellation ? (form.get('endOn') ?? '').trim() : '';
  return {
    fields: readDetails(form, DECLARED),
    isForCause,
    reason: { value: reason, problem: reasonProblem(reason, isForCause) },
    endOn: { value: endOn, problem: endOn === '' || isDay(endOn) ? null : 'endOnWrong' },
  };
}

function reasonProblem(reason: string, isForCause: boolean): ReasonProblem | null {
  if (!isForCause) return reason === '' ? null : 'reasonUnneeded';
  const isReason = reason !== '' && hasAtMost(reason, REASON_MAX) && isStorable(reason);
  return isReason ? null : 'reasonMissing';
}

export function isComplete({ fields, reason, endOn }: DeclarationForm): boolean {
  return !hasProblem(fields) && reason.problem === null && endOn.problem === null;
}

/** The declaration of a complete form. */
export function declaredIn({ fields, isForCause, reason, endOn }: DeclarationForm) {
  const value = (name: Declared) => fields.get(name)?.value ?? '';
  return {
    name: value('name'),
    email: value('email'),
    reference: value('reference'),
    reason: isForCause ? reason.value : null,
    endOn: endOn.value === '' ? null : endOn.value,
  };
}

function isDay(text: string): boolean {
  const at = /^2\d{3}-\d\d-\d\d$/.test(text) ? Date.parse(text) : NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}
