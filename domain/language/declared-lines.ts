import type { Declaration, DeclarationKind } from '../declaration.ts';
import type { Language } from './language.ts';

type Declared = Omit<Declaration, 'merchantId' | 'id'>;

/** A declaration in the payer's words. */
export function declaredLines(
  language: Language,
  { kind, name, email, reference, reason, endOn }: Declared,
): { label: string; text: string }[] {
  const { say, quote, date } = language;
  const isOrdinary = kind === 'cancellation' && reason === null;
  const declares = kind === 'withdrawal' ? 'iWithdraw' : isOrdinary ? 'iCancel' : 'iCancelForCause';
  const end = endOn === null ? say('earliestDate') : date(Date.parse(endOn));
  return [
    { label: say('declaration'), text: say(declares) },
    ...(reason === null ? [] : [{ label: say('cause'), text: quote(reason) }]),
    { label: say('contractNumber'), text: quote(reference) },
    { label: say('name'), text: quote(name) },
    { label: say('email'), text: quote(email) },
    ...(kind === 'cancellation' ? [{ label: say('endOn'), text: end }] : []),
  ];
}

/** As {@link declaredLines}, with the instant and the number of the declaration. */
export function confirmationLines(
  language: Language,
  { id, createdAt, ...declared }: Omit<Declaration, 'merchantId'> & { readonly createdAt: number },
): { label: string; text: string; isDated?: boolean }[] {
  const { say, dateTime } = language;
  return [
    ...declaredLines(language, declared),
    { label: say('receivedAt'), text: dateTime(createdAt), isDated: true },
    { label: say('confirmationNumber'), text: id },
  ];
}

export function confirmationTitle({ say }: Language, kind: DeclarationKind): string {
  return say(kind === 'cancellation' ? 'cancellationReceived' : 'withdrawalReceived');
}
