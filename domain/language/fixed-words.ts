import type { DeclarationKind } from '../declaration.ts';
import type { Locale } from '../locales.ts';

interface FixedWords {
  /** The words of the link to the page. */
  readonly link: string;
  /** The words of the button that declares. */
  readonly confirm: string;
}

/**
 * Words that statutes fix, or that are as clear, so that no merchant changes them: § 312k and § 356a BGB, Code de la consommation D.215-1
 * and following, Directive 2011/83/EU, Article 11a. Read in November 2026.
 */
export const FIXED_WORDS: Readonly<Record<Locale, Record<DeclarationKind, FixedWords>>> = {
  en: {
    cancellation: { link: 'Cancel contract here', confirm: 'Cancel now' },
    withdrawal: { link: 'Withdraw from contract here', confirm: 'Confirm withdrawal' },
  },
  de: {
    cancellation: { link: 'Verträge hier kündigen', confirm: 'Jetzt kündigen' },
    withdrawal: { link: 'Vertrag widerrufen', confirm: 'Widerruf bestätigen' },
  },
  fr: {
    cancellation: { link: 'Résilier votre contrat', confirm: 'Notification de la résiliation' },
    withdrawal: { link: 'Renoncer au contrat ici', confirm: 'Confirmer la rétractation' },
  },
  es: {
    cancellation: { link: 'Cancelar el contrato aquí', confirm: 'Cancelar ahora' },
    withdrawal: { link: 'Desistir del contrato aquí', confirm: 'Confirmar el desistimiento' },
  },
  pt: {
    cancellation: { link: 'Cancelar o contrato aqui', confirm: 'Cancelar agora' },
    withdrawal: { link: 'Desistir do contrato aqui', confirm: 'Confirmar a desistência' },
  },
  it: {
    cancellation: { link: 'Disdire il contratto qui', confirm: 'Disdire ora' },
    withdrawal: { link: 'Recedere dal contratto qui', confirm: 'Confermare il recesso' },
  },
  nl: {
    cancellation: { link: 'Contract hier opzeggen', confirm: 'Nu opzeggen' },
    withdrawal: { link: 'Overeenkomst hier herroepen', confirm: 'Herroeping bevestigen' },
  },
  ja: {
    cancellation: { link: '契約をここで解約する', confirm: '今すぐ解約する' },
    withdrawal: { link: '契約の申込みをここで撤回する', confirm: '撤回を確定する' },
  },
  ar: {
    cancellation: { link: 'إلغاء العقد هنا', confirm: 'إلغاء الآن' },
    withdrawal: { link: 'العدول عن العقد هنا', confirm: 'تأكيد العدول' },
  },
};

/** In French, the payer checks a summary before the cancellation (D.215-2). German courts forbid a second page. */
export function needsSummary(locale: Locale, kind: DeclarationKind): boolean {
  return locale === 'fr' && kind === 'cancellation';
}
