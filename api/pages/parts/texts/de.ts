import type { Texts } from './en.ts';

/** German. Addresses the payer with „Sie“. */
export const de: Texts = {
  errorTitle: 'Fehler: {title}',
  dateInUtc: '{date} (UTC)',
  continue: 'Weiter',
  tryAgain: 'Erneut versuchen',
  openPage: 'Seite öffnen',
  continueTo: 'Weiter zu {name}',
  returnTo: 'Zurück zu {name}',
  cancelAndReturn: 'Abbrechen und zurück zu {name}',
  termsLink: 'Geschäftsbedingungen',
  supportLink: 'Hilfe und Kontakt',
  nothing: 'Nichts',
  nothingMoreCharged: 'Es wurde nichts abgebucht, und es wird auch nichts abgebucht.',
  paymentReceived: 'Vielen Dank: Ihre Zahlung ist eingegangen',

  payByCard: 'Mit Karte zahlen',
  yourCard: 'Ihre Karte',
  newCard: 'Neue Karte',
  nameOnCard: 'Name auf der Karte',
  cardNumber: 'Kartennummer',
  expiry: 'Gültig bis',
  expiryFormat: 'MM / JJ',
  cvc: 'Prüfnummer',
  correctFields: 'Berichtigen Sie die markierten Felder. Es wurde nichts abgebucht.',
  numberMissing: 'Geben Sie die Kartennummer ein.',
  numberUnreadable: 'Geben Sie die Kartennummer nur mit Ziffern ein.',
  numberTooShort: 'Die Kartennummer ist zu kurz. Prüfen Sie, ob eine Ziffer fehlt.',
  numberTooLong:
    'Die Kartennummer ist zu lang. Prüfen Sie, ob eine Ziffer doppelt eingegeben wurde.',
  numberMistyped: 'Die Kartennummer stimmt nicht. Vergleichen Sie jede Ziffer mit Ihrer Karte.',
  expiryUnreadable:
    'Geben Sie Monat und Jahr so ein, wie sie auf der Karte stehen, zum Beispiel 08 / 29.',
  expiryPast:
    'Dieses Datum liegt in der Vergangenheit. Prüfen Sie das Ablaufdatum oder verwenden Sie eine andere Karte.',
  cvcThree: 'Geben Sie die 3 Ziffern auf der Rückseite der Karte ein.',
  cvcFour: 'Geben Sie die 4 Ziffern auf der Vorderseite der Karte ein.',

  paymentDeclined:
    'Ihre Zahlung wurde abgelehnt, und es wurde nichts abgebucht. Prüfen Sie die Angaben und versuchen Sie es erneut, oder verwenden Sie eine andere Karte.',
  cardDeclined:
    'Ihre Karte wurde abgelehnt und nicht gespeichert. Es wurde nichts abgebucht. Prüfen Sie die Angaben und versuchen Sie es erneut, oder verwenden Sie eine andere Karte.',
  cardEnding: '{brand} mit den Endziffern {digits}',
  yourCardInSentence: 'Ihre Karte',

  testMode: 'Testmodus: Es fließt kein Geld.',
  testCards: 'Testmodus: Es fließt kein Geld. Testkarten',
  testCardHint:
    'Beliebiges Ablaufdatum in der Zukunft, beliebiger Name, Prüfnummer mit 3 Ziffern (bei American Express 4).',

  enterAtCompany:
    'Sie geben Ihre Karte auf einer Seite von {company} ein. {company} verarbeitet Kartenzahlungen für {name}.',
  enterAtCompanyNow: 'Sie geben Ihre Karte auf einer Seite von {company} ein.',
  continueToCard: 'Weiter zur Karteneingabe',
  entryFailedTitle: 'Ihre Karte kann gerade nicht eingegeben werden',
  entryFailed:
    'Die Seite von {company} hat sich nicht geöffnet. Es wurde nichts abgebucht, und es ist nichts verloren. Versuchen Sie es gleich noch einmal.',
  chargedOnceEntered: 'Sobald Sie sie eingegeben haben, werden {amount} abgebucht.',
  trialOnceEntered:
    'Sobald Sie sie eingegeben haben, beginnt Ihr kostenloser Probezeitraum. Heute wird nichts abgebucht.',
  nothingIsCharged: 'Es wird nichts abgebucht.',
  nothingIsChargedToday: 'Heute wird nichts abgebucht.',

  yourDetails: 'Ihre Angaben',
  name: 'Name',
  email: 'E-Mail-Adresse',
  phone: 'Telefonnummer',
  nameMissing: 'Geben Sie Ihren Namen ein.',
  emailWrong: 'Geben Sie eine E-Mail-Adresse ein, zum Beispiel anna@example.com.',
  phoneWrong:
    'Geben Sie eine Telefonnummer mit internationaler Vorwahl ein, zum Beispiel +49 30 901820.',
  continueToPayment: 'Weiter zur Zahlung',
  continueToYourCard: 'Weiter zu Ihrer Karte',

  processingPayment: 'Ihre Zahlung wird bearbeitet',
  savingCard: 'Ihre Karte wird gespeichert',
  pageUpdates:
    'Diese Seite aktualisiert sich alle paar Sekunden. Sie können sie offen lassen oder später wiederkommen: Es wird nicht doppelt abgebucht.',
  lockedTitle: 'Diese Seite nimmt keine Karten mehr an',
  locked:
    'Hier wurden zu viele Karten abgelehnt, und es wurde nichts abgebucht. Bitten Sie {name} um einen neuen Link, wenn Sie es noch einmal versuchen möchten.',
  noGatewayTitle: 'Hier können noch keine Karten eingegeben werden',
  noGateway:
    '{name} kann noch keine Karten annehmen. Es wurde nichts abgebucht. Fragen Sie {name}, wann Sie es erneut versuchen können.',
  unknownCheckout: 'Diese Bezahlseite gibt es nicht',
  unknownPayment: 'Diese Zahlung gibt es nicht',
  unknownSetup: 'Diese Seite zum Speichern einer Karte gibt es nicht',
  unknownUpdate: 'Diese Seite zum Ändern einer Karte gibt es nicht',
  unknownLink: 'Der Link ist unvollständig oder war nie gültig. Es wurde nichts abgebucht.',
  confirmTitle: 'Noch ein Schritt',
  confirm: 'Es wurde noch nichts abgebucht. Fahren Sie fort, um die eingegebene Karte abzusenden.',
  foreignFormTitle: 'Dieses Formular ist nicht mehr gültig',
  foreignForm: 'Öffnen Sie die Seite noch einmal. Es wurde nichts abgebucht.',
  embeddedTitle: 'Diese Seite kann nicht Teil einer anderen Seite sein',
  embedded: 'Sie öffnet sich nur in einem eigenen Fenster. Es wurde nichts abgebucht.',
  badFormTitle: 'Das Formular konnte nicht gelesen werden',
  badForm: 'Gehen Sie zurück und versuchen Sie es erneut. Es wurde nichts abgebucht.',
  tooManyTitle: 'Zu viele Versuche',
  tooMany:
    'Aus Ihrem Netz wurden zu viele Karten versucht oder abgelehnt oder zu viele unbekannte Links geöffnet. Es wurde nichts abgebucht. Sie können es in {minutes} noch einmal versuchen, um {time}.',
  unavailableTitle: 'Einen Moment bitte',
  unavailable:
    'Wir können diese Seite gerade nicht anzeigen. Es ist nichts verloren: Laden Sie sie gleich neu, dann sehen Sie den aktuellen Stand. Es wird nicht doppelt abgebucht.',

  paidAmount: 'Bezahlt',
  refundedAmount: 'Erstattet',
  productLabel: 'Produkt',
  merchantLabel: 'Händler',
  cardLabel: 'Karte',
  dateLabel: 'Datum',
  referenceLabel: 'Referenz',

  subscription: 'Abonnement',
  pay: '{amount} zahlen',
  startTrial: 'Karte speichern und kostenlos testen',
  today: 'Heute',
  todayUpfront: 'Anfangsbetrag, heute',
  thereafter: 'Danach',
  afterThat: 'Anschließend',
  inAll: 'Insgesamt',
  amountOnAfterDays: {
    one: '{amount} am {date}, nach {count} kostenlosen Tag',
    other: '{amount} am {date}, nach {count} kostenlosen Tagen',
  },
  amountOnAfterWeeks: {
    one: '{amount} am {date}, nach {count} kostenlosen Woche',
    other: '{amount} am {date}, nach {count} kostenlosen Wochen',
  },
  amountOnAfterMonths: {
    one: '{amount} am {date}, nach {count} kostenlosen Monat',
    other: '{amount} am {date}, nach {count} kostenlosen Monaten',
  },
  amountOnAfterYears: {
    one: '{amount} am {date}, nach {count} kostenlosen Jahr',
    other: '{amount} am {date}, nach {count} kostenlosen Jahren',
  },
  everyDay: { one: '{amount} jeden Tag', other: '{amount} alle {count} Tage' },
  everyWeek: { one: '{amount} jede Woche', other: '{amount} alle {count} Wochen' },
  everyMonth: { one: '{amount} jeden Monat', other: '{amount} alle {count} Monate' },
  everyYear: { one: '{amount} jedes Jahr', other: '{amount} alle {count} Jahre' },
  fromDate: '{charges}, ab dem {date}',
  payments: { one: '{count} Zahlung', other: '{count} Zahlungen' },
  amountInPayments: '{amount} in {payments}',
  lastPaymentOn: '{payments}, die letzte am {date}',
  consentSubscription:
    'Wenn Sie fortfahren, erlauben Sie {name}, von dieser Karte jede Zahlung dieses Abonnements abzubuchen, bis es endet oder gekündigt wird.',
  consentSavedCard:
    'Wenn Sie fortfahren, erlauben Sie {name}, von dieser Karte später Zahlungen abzubuchen, die Sie miteinander vereinbaren, bis Sie diese Erlaubnis widerrufen.',
  checkoutExpiredTitle: 'Diese Bezahlseite ist abgelaufen',
  checkoutExpired:
    'Es wurde nichts abgebucht. Bitten Sie {name} um einen neuen Link, wenn Sie noch bestellen möchten.',
  checkoutCancelledTitle: 'Dieser Bezahlvorgang wurde abgebrochen',
  trialStartedTitle: 'Ihr kostenloser Probezeitraum hat begonnen',
  trialStarted: 'Heute wurde nichts abgebucht. Die erste Zahlung von {amount} erfolgt am {date}.',
  nextPaymentIs: 'Die nächste Zahlung von {amount} erfolgt am {date}.',
  lastPayment: 'Das war die letzte Zahlung. Es wird nichts mehr abgebucht.',
  subscriptionEndedTitle: 'Dieses Abonnement ist beendet',
  paymentsReceived: {
    one: '{count} Zahlung ist eingegangen. Es wird nichts mehr abgebucht.',
    other: '{count} Zahlungen sind eingegangen. Es wird nichts mehr abgebucht.',
  },
  checkoutCompleteTitle: 'Dieser Bezahlvorgang ist abgeschlossen',
  checkoutComplete: 'Hier ist nichts mehr zu tun.',

  linkGoneTitle: 'Dieser Link kann nicht verwendet werden',
  linkGone:
    'Er ist unvollständig, abgelaufen oder wurde schon so oft verwendet wie erlaubt. Es wurde nichts abgebucht.',
  askSender: 'Bitten Sie den Absender um einen neuen Link.',
  linkBusyTitle: 'Dieser Link wurde aus Ihrem Netz zu oft verwendet',
  linkBusy:
    'Es wurde nichts abgebucht. Öffnen Sie den Link in zehn Minuten noch einmal oder aus einem anderen Netz.',
  openLinkAgain: 'Öffnen Sie den Link noch einmal. Es wurde nichts abgebucht.',
  openLink: 'Link öffnen',

  paymentTo: 'Zahlung an {name}',
  toPayOnce: 'Einmalig zu zahlen',
  paidTo: '{amount} wurden an {name} gezahlt.',
  refundedTitle: 'Diese Zahlung wurde erstattet',
  refunded: '{amount} wurden an {name} gezahlt und vollständig erstattet.',
  paymentExpiredTitle: 'Diese Zahlungsseite ist abgelaufen',
  paymentExpired:
    'Es wurde nichts abgebucht. Bitten Sie {name} um einen neuen Link, wenn Sie noch zahlen möchten.',
  paymentCancelledTitle: 'Diese Zahlung wurde storniert',

  saveCardWith: 'Karte bei {name} speichern',
  canChargeLater: '{name} kann die Karte später belasten, wie Sie es vereinbart haben.',
  saveCard: 'Karte speichern',
  chargedToday: 'Heute abgebucht',
  cardSavedTitle: 'Ihre Karte wurde gespeichert',
  canChargeNow: '{name} kann {card} ab jetzt belasten, wie Sie es vereinbart haben.',
  nothingChargedNow: 'Jetzt wurde nichts abgebucht.',
  setupExpiredTitle: 'Diese Seite ist abgelaufen',
  setupExpired:
    'Es wurde nichts gespeichert. Bitten Sie {name} um einen neuen Link, wenn Sie Ihre Karte noch speichern möchten.',

  changeCard: 'Karte ändern',
  cardNow: 'Bisherige Karte',
  noCard: 'Keine',
  saveCardAndPay: 'Karte speichern und {amount} zahlen',
  amountDue: '{amount}, jetzt fällig',
  nextPayment: 'Nächste Zahlung',
  dueSince: 'Fällig seit',
  dueReason: 'Was passiert ist',
  nextTry: 'Nächster Versuch',
  withPresentCard: '{date}, mit der bisherigen Karte',
  noNextTry: 'Keiner mit der bisherigen Karte',
  reasonDeclined: 'Die Karte wurde abgelehnt',
  reasonFunds: 'Das Konto war nicht ausreichend gedeckt',
  reasonExpired: 'Die Karte ist abgelaufen',
  reasonDetails: 'Die Kartendaten wurden nicht angenommen',
  reasonUnusable: 'Die Karte kann nicht mehr belastet werden',
  reasonTechnical: 'Die Zahlung konnte zu diesem Zeitpunkt nicht verarbeitet werden',
  amountOn: '{amount} am {date}',
  cardReplacedTitle: 'Ihre Karte wurde geändert',
  usedFromNowOn: 'Ab jetzt wird {card} verwendet.',
  yourCardUsedFromNowOn: 'Ab jetzt wird Ihre neue Karte verwendet.',
  nothingChargedForChange: 'Für die Änderung wurde nichts abgebucht.',
  dueIsTriedNext:
    'Die fällige Zahlung von {amount} wird beim nächsten Versuch von dieser Karte abgebucht.',
  duePaid: 'Die fällige Zahlung ist eingegangen.',
  dueAmountPaid: 'Die fällige Zahlung von {amount} ist eingegangen.',
  linkExpiredTitle: 'Dieser Link ist abgelaufen',
  linkExpired: 'Es wurde nichts geändert. Bitten Sie {name} um einen neuen Link.',
  cannotChangeTitle: 'Ihre Karte kann hier nicht geändert werden',
  notBegun:
    'Dieses Abonnement hat noch nicht begonnen. Starten Sie es über den Link, den Sie von {name} erhalten haben.',
  paused:
    'Dieses Abonnement ist pausiert, und es wird nichts abgebucht. Sie können Ihre Karte ändern, sobald es weiterläuft.',
  ended: 'Dieses Abonnement ist beendet. Es wird nichts mehr abgebucht.',
  tryLater: 'Versuchen Sie es später noch einmal.',
  newCardSavedTitle: 'Ihre neue Karte wurde gespeichert',
  newCardKept: 'Ihre neue Karte wurde gespeichert, aber die Zahlung von {amount} wurde abgelehnt.',
  useAnotherCard: 'Sie können eine andere Karte verwenden.',
  noMoreCards: 'Diese Seite nimmt keine Karten mehr an. Bitten Sie {name} um einen neuen Link.',
  dueDeclined:
    'Die Zahlung von {amount} wurde abgelehnt, und es wurde nichts abgebucht. Verwenden Sie eine andere Karte.',
  bankWantsConfirmation: 'Ihre Bank möchte, dass Sie die Zahlung von {amount} bestätigen',
  notConfirmed:
    'Die Zahlung wurde nicht bestätigt, und es wurde nichts abgebucht. Sie können es erneut versuchen.',
  confirmWithBank: 'Bei Ihrer Bank bestätigen',
  continueToBank: 'Weiter zu Ihrer Bank',
  bankAsks: 'Ihre Bank bittet Sie, die Zahlung zu bestätigen. Danach kommen Sie hierher zurück.',
  orAnotherCard: 'Oder verwenden Sie eine andere Karte:',
};
