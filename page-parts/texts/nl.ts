import type { Texts } from './en.ts';

/** Dutch. Addresses the payer with ‘u’. */
export const nl: Texts = {
  errorTitle: 'Fout: {title}',
  dateInUtc: '{date} (UTC)',
  continue: 'Doorgaan',
  tryAgain: 'Opnieuw proberen',
  openPage: 'Pagina openen',
  continueTo: 'Verder naar {name}',
  returnTo: 'Terug naar {name}',
  cancelAndReturn: 'Annuleren en terug naar {name}',
  nothing: 'Niets',
  nothingCharged: 'Er is niets afgeschreven.',
  nothingMoreCharged: 'Er is niets afgeschreven en er wordt ook niets afgeschreven.',
  paymentReceived: 'Bedankt: uw betaling is ontvangen',

  payByCard: 'Betalen met kaart',
  yourCard: 'Uw kaart',
  newCard: 'Nieuwe kaart',
  nameOnCard: 'Naam op de kaart',
  cardNumber: 'Kaartnummer',
  expiry: 'Vervaldatum',
  expiryFormat: 'MM / JJ',
  cvc: 'CVC-code',
  checkCard: 'Controleer uw kaartgegevens',
  correctFields: 'Verbeter de gemarkeerde velden. Er is niets afgeschreven.',
  startOver: 'Opnieuw beginnen',
  numberMissing: 'Vul het kaartnummer in.',
  numberUnreadable: 'Vul het kaartnummer in met alleen cijfers.',
  numberTooShort: 'Het kaartnummer is te kort. Controleer of er een cijfer ontbreekt.',
  numberTooLong: 'Het kaartnummer is te lang. Controleer of een cijfer dubbel is ingevuld.',
  numberMistyped: 'Het kaartnummer klopt niet. Vergelijk elk cijfer met uw kaart.',
  expiryUnreadable: 'Vul maand en jaar in zoals ze op de kaart staan, bijvoorbeeld 08 / 29.',
  expiryPast:
    'Deze datum ligt in het verleden. Controleer de vervaldatum of gebruik een andere kaart.',
  cvcThree: 'Vul de 3 cijfers op de achterkant van de kaart in.',
  cvcFour: 'Vul de 4 cijfers op de voorkant van de kaart in.',

  paymentDeclined:
    'Uw betaling is geweigerd en er is niets afgeschreven. Controleer de gegevens en probeer het opnieuw, of gebruik een andere kaart.',
  cardDeclined:
    'Uw kaart is geweigerd en niet opgeslagen. Er is niets afgeschreven. Controleer de gegevens en probeer het opnieuw, of gebruik een andere kaart.',
  cardEnding: '{brand} eindigend op {digits}',
  yourCardInSentence: 'uw kaart',

  testMode: 'Testmodus: er wordt geen geld overgemaakt.',
  testCards: 'Testmodus: er wordt geen geld overgemaakt. Testkaarten',
  testCardHint:
    'Een willekeurige vervaldatum in de toekomst, een willekeurige naam en een CVC-code van 3 cijfers (bij American Express 4).',

  enterAtCompany:
    'U vult uw kaart in op een pagina van {company}, dat kaartbetalingen verwerkt voor {name}.',
  enterAtCompanyNow: 'U vult uw kaart in op een pagina van {company}.',
  continueToCard: 'Verder om uw kaart in te vullen',
  entryFailedTitle: 'Uw kaart kan nu niet worden ingevuld',
  entryFailed:
    'De pagina van {company} is niet geopend. Er is niets afgeschreven en er is niets verloren. Probeer het zo meteen opnieuw.',
  chargedOnceEntered: 'Zodra u die hebt ingevuld, wordt {amount} afgeschreven.',
  trialOnceEntered:
    'Zodra u die hebt ingevuld, begint uw gratis proefperiode. Er wordt vandaag niets afgeschreven.',
  nothingIsCharged: 'Er wordt niets afgeschreven.',
  nothingIsChargedToday: 'Er wordt vandaag niets afgeschreven.',

  yourDetails: 'Uw gegevens',
  name: 'Naam',
  email: 'E-mailadres',
  phone: 'Telefoonnummer',
  nameMissing: 'Vul uw naam in.',
  emailWrong: 'Vul een e-mailadres in, bijvoorbeeld anna@example.com.',
  phoneWrong:
    'Vul een telefoonnummer met internationaal voorvoegsel in, bijvoorbeeld +31 20 624 1111.',
  continueToPayment: 'Verder naar betalen',
  continueToYourCard: 'Verder naar uw kaart',

  processingPayment: 'Uw betaling wordt verwerkt',
  savingCard: 'Uw kaart wordt opgeslagen',
  pageReloads:
    'Deze pagina wordt om de paar seconden vernieuwd. U kunt haar open laten of later terugkomen: er wordt niet twee keer afgeschreven.',
  lockedTitle: 'Deze pagina accepteert geen kaarten meer',
  locked:
    'Hier zijn te veel kaarten geweigerd en er is niets afgeschreven. Vraag {name} om een nieuwe link als u het opnieuw wilt proberen.',
  noGatewayTitle: 'Hier kunnen nog geen kaarten worden ingevuld',
  noGateway:
    '{name} kan nog geen kaarten accepteren. Er is niets afgeschreven. Vraag {name} wanneer u het opnieuw kunt proberen.',
  unknownCheckout: 'Deze betaalpagina bestaat niet',
  unknownPayment: 'Deze betaling bestaat niet',
  unknownSetup: 'Deze pagina om een kaart op te slaan bestaat niet',
  unknownUpdate: 'Deze pagina om een kaart te wijzigen bestaat niet',
  unknownLink: 'De link is onvolledig of is nooit geldig geweest. Er is niets afgeschreven.',
  confirmTitle: 'Nog één stap',
  confirm: 'Er is nog niets afgeschreven. Ga door om de ingevulde kaart te versturen.',
  foreignFormTitle: 'Dit formulier is niet meer geldig',
  foreignForm: 'Open de pagina opnieuw. Er is niets afgeschreven.',
  embeddedTitle: 'Deze pagina kan geen deel zijn van een andere pagina',
  embedded: 'Ze opent alleen in een eigen venster. Er is niets afgeschreven.',
  badFormTitle: 'Het formulier kon niet worden gelezen',
  badForm: 'Ga terug en probeer het opnieuw. Er is niets afgeschreven.',
  tooManyTitle: 'Te veel pogingen',
  tooMany:
    'Vanuit uw netwerk zijn te veel kaarten geprobeerd of geweigerd, of te veel onbekende links geopend. Er is niets afgeschreven. Open de link later opnieuw.',
  unavailableTitle: 'Een ogenblik',
  unavailable:
    'We kunnen deze pagina nu niet tonen. Er is niets verloren: vernieuw haar zo meteen en u ziet hoe het ervoor staat. Er wordt niet twee keer afgeschreven.',

  subscription: 'Abonnement',
  pay: '{amount} betalen',
  startTrial: 'Gratis proefperiode starten',
  today: 'Vandaag',
  thereafter: 'Daarna',
  afterThat: 'Vervolgens',
  inAll: 'In totaal',
  amountOnAfterDays: {
    one: '{amount} op {date}, na {count} gratis dag',
    other: '{amount} op {date}, na {count} gratis dagen',
  },
  amountOnAfterWeeks: {
    one: '{amount} op {date}, na {count} gratis week',
    other: '{amount} op {date}, na {count} gratis weken',
  },
  amountOnAfterMonths: {
    one: '{amount} op {date}, na {count} gratis maand',
    other: '{amount} op {date}, na {count} gratis maanden',
  },
  amountOnAfterYears: {
    one: '{amount} op {date}, na {count} gratis jaar',
    other: '{amount} op {date}, na {count} gratis jaren',
  },
  everyDay: { one: '{amount} per dag', other: '{amount} per {count} dagen' },
  everyWeek: { one: '{amount} per week', other: '{amount} per {count} weken' },
  everyMonth: { one: '{amount} per maand', other: '{amount} per {count} maanden' },
  everyYear: { one: '{amount} per jaar', other: '{amount} per {count} jaar' },
  fromDate: '{charges}, vanaf {date}',
  payments: { one: '{count} betaling', other: '{count} betalingen' },
  lastPaymentOn: '{payments}, de laatste op {date}',
  checkoutExpiredTitle: 'Deze betaalpagina is verlopen',
  checkoutExpired:
    'Er is niets afgeschreven. Vraag {name} om een nieuwe link als u nog wilt bestellen.',
  checkoutCancelledTitle: 'Deze betaling is geannuleerd',
  trialStartedTitle: 'Uw gratis proefperiode is begonnen',
  trialStarted: 'Er is vandaag niets afgeschreven. De eerste betaling is {amount} op {date}.',
  nextPaymentIs: 'De volgende betaling is {amount} op {date}.',
  lastPayment: 'Dit was de laatste betaling. Er wordt niets meer afgeschreven.',
  subscriptionEndedTitle: 'Dit abonnement is beëindigd',
  paymentsReceived: {
    one: 'Er is {count} betaling ontvangen. Er wordt niets meer afgeschreven.',
    other: 'Er zijn {count} betalingen ontvangen. Er wordt niets meer afgeschreven.',
  },
  checkoutCompleteTitle: 'Deze bestelling is afgerond',
  checkoutComplete: 'U hoeft hier niets meer te doen.',

  linkGoneTitle: 'Deze link kan niet worden gebruikt',
  linkGone:
    'De link is onvolledig, is verlopen of is al zo vaak gebruikt als is toegestaan. Er is niets afgeschreven.',
  askSender: 'Vraag de afzender om een nieuwe link.',
  linkBusyTitle: 'Deze link is te vaak vanuit uw netwerk gebruikt',
  linkBusy:
    'Er is niets afgeschreven. Open de link over tien minuten opnieuw, of vanuit een ander netwerk.',
  openLinkAgain: 'Open de link opnieuw. Er is niets afgeschreven.',
  openLink: 'Link openen',

  paymentTo: 'Betaling aan {name}',
  toPayOnce: 'Eenmalig te betalen',
  paidTo: '{amount} is betaald aan {name}.',
  refundedTitle: 'Deze betaling is terugbetaald',
  refunded: '{amount} is betaald aan {name} en volledig terugbetaald.',
  paymentExpiredTitle: 'Deze betaalpagina is verlopen',
  paymentExpired:
    'Er is niets afgeschreven. Vraag {name} om een nieuwe link als u nog wilt betalen.',
  paymentCancelledTitle: 'Deze betaling is geannuleerd',

  saveCardWith: 'Kaart opslaan bij {name}',
  canChargeLater: '{name} kan later van de kaart afschrijven, zoals u hebt afgesproken.',
  saveCard: 'Kaart opslaan',
  chargedToday: 'Vandaag afgeschreven',
  cardSavedTitle: 'Uw kaart is opgeslagen',
  canChargeNow: '{name} kan vanaf nu afschrijven van {card}, zoals u hebt afgesproken.',
  nothingChargedNow: 'Er is nu niets afgeschreven.',
  setupExpiredTitle: 'Deze pagina is verlopen',
  setupExpired:
    'Er is niets opgeslagen. Vraag {name} om een nieuwe link als u uw kaart nog wilt opslaan.',

  changeCard: 'Uw kaart wijzigen',
  cardNow: 'Huidige kaart',
  noCard: 'Geen',
  saveCardAndPay: 'Kaart opslaan en {amount} betalen',
  amountDue: '{amount}, nu verschuldigd',
  nextPayment: 'Volgende betaling',
  amountOn: '{amount} op {date}',
  cardReplacedTitle: 'Uw kaart is vervangen',
  usedFromNowOn: 'Vanaf nu wordt {card} gebruikt.',
  yourCardUsedFromNowOn: 'Vanaf nu wordt uw nieuwe kaart gebruikt.',
  nothingChargedForChange: 'Er is niets afgeschreven voor de wijziging.',
  dueIsTriedNext: 'De openstaande betaling van {amount} wordt hierna met deze kaart geprobeerd.',
  duePaid: 'De openstaande betaling is gelukt.',
  dueAmountPaid: 'De openstaande betaling van {amount} is gelukt.',
  linkExpiredTitle: 'Deze link is verlopen',
  linkExpired: 'Er is niets gewijzigd. Vraag {name} om een nieuwe link.',
  cannotChangeTitle: 'Uw kaart kan hier niet worden gewijzigd',
  notBegun:
    'Dit abonnement is nog niet begonnen. Start het via de link die u van {name} hebt gekregen.',
  paused:
    'Dit abonnement is gepauzeerd en er wordt niets afgeschreven. U kunt uw kaart wijzigen zodra het doorgaat.',
  ended: 'Dit abonnement is beëindigd. Er wordt niets meer afgeschreven.',
  tryLater: 'Probeer het later opnieuw.',
  newCardSavedTitle: 'Uw nieuwe kaart is opgeslagen',
  newCardKept: 'Uw nieuwe kaart is opgeslagen, maar de betaling van {amount} is geweigerd.',
  useAnotherCard: 'U kunt een andere kaart gebruiken.',
  noMoreCards: 'Deze pagina accepteert geen kaarten meer. Vraag {name} om een nieuwe link.',
  dueDeclined:
    'De betaling van {amount} is geweigerd en er is niets afgeschreven. Gebruik een andere kaart.',
  bankWantsConfirmation: 'Uw bank wil dat u de betaling van {amount} bevestigt',
  notConfirmed:
    'De betaling is niet bevestigd en er is niets afgeschreven. U kunt het opnieuw proberen.',
  confirmWithBank: 'Bevestigen bij uw bank',
  continueToBank: 'Verder naar uw bank',
  bankAsks: 'Uw bank vraagt u de betaling te bevestigen. Daarna komt u hier terug.',
  orAnotherCard: 'Of gebruik een andere kaart:',
};
