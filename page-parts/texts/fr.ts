import type { Texts } from './en.ts';

/** French. Addresses the payer with « vous ». Before : ? ! and inside « » there is a no-break space. */
export const fr: Texts = {
  errorTitle: 'Erreur : {title}',
  dateInUtc: '{date} (UTC)',
  continue: 'Continuer',
  tryAgain: 'Réessayer',
  openPage: 'Ouvrir la page',
  continueTo: 'Continuer vers {name}',
  returnTo: 'Revenir à {name}',
  cancelAndReturn: 'Annuler et revenir à {name}',
  nothing: 'Rien',
  nothingCharged: 'Rien n’a été débité.',
  nothingMoreCharged: 'Rien n’a été débité et rien ne le sera.',
  paymentReceived: 'Merci : votre paiement a bien été reçu',

  payByCard: 'Payer par carte',
  yourCard: 'Votre carte',
  newCard: 'Nouvelle carte',
  nameOnCard: 'Nom sur la carte',
  cardNumber: 'Numéro de carte',
  expiry: 'Expiration',
  expiryFormat: 'MM / AA',
  cvc: 'Cryptogramme',
  checkCard: 'Vérifiez les données de votre carte',
  correctFields: 'Corrigez les champs signalés. Rien n’a été débité.',
  startOver: 'Recommencer',
  numberMissing: 'Saisissez le numéro de la carte.',
  numberUnreadable: 'Saisissez le numéro de la carte uniquement avec des chiffres.',
  numberTooShort: 'Le numéro de carte est trop court. Vérifiez qu’il ne manque aucun chiffre.',
  numberTooLong:
    'Le numéro de carte est trop long. Vérifiez qu’aucun chiffre n’a été saisi deux fois.',
  numberMistyped: 'Le numéro de carte n’est pas correct. Comparez chaque chiffre avec votre carte.',
  expiryUnreadable:
    'Saisissez le mois et l’année comme ils figurent sur la carte, par exemple 08 / 29.',
  expiryPast: 'Cette date est passée. Vérifiez la date d’expiration ou utilisez une autre carte.',
  cvcThree: 'Saisissez les 3 chiffres au dos de la carte.',
  cvcFour: 'Saisissez les 4 chiffres au recto de la carte.',

  paymentDeclined:
    'Votre paiement a été refusé et rien n’a été débité. Vérifiez les données et réessayez, ou utilisez une autre carte.',
  cardDeclined:
    'Votre carte a été refusée et n’a pas été enregistrée. Rien n’a été débité. Vérifiez les données et réessayez, ou utilisez une autre carte.',
  cardEnding: '{brand} se terminant par {digits}',
  yourCardInSentence: 'votre carte',

  testMode: 'Mode test : aucun mouvement d’argent.',
  testCards: 'Mode test : aucun mouvement d’argent. Cartes de test',
  testCardHint:
    'N’importe quelle date d’expiration future, n’importe quel nom, un cryptogramme à 3 chiffres (4 pour American Express).',

  enterAtCompany:
    'Vous saisissez votre carte sur une page de {company}, qui traite les cartes pour {name}.',
  enterAtCompanyNow: 'Vous saisissez votre carte sur une page de {company}.',
  continueToCard: 'Continuer vers la saisie de la carte',
  entryFailedTitle: 'Votre carte ne peut pas être saisie pour le moment',
  entryFailed:
    'La page de {company} ne s’est pas ouverte. Rien n’a été débité et rien n’est perdu. Réessayez dans un instant.',
  chargedOnceEntered: 'Dès que vous l’aurez saisie, {amount} seront débités.',
  trialOnceEntered:
    'Dès que vous l’aurez saisie, votre essai gratuit commencera. Rien n’est débité aujourd’hui.',
  nothingIsCharged: 'Rien n’est débité.',
  nothingIsChargedToday: 'Rien n’est débité aujourd’hui.',

  yourDetails: 'Vos coordonnées',
  name: 'Nom',
  email: 'Adresse e-mail',
  phone: 'Numéro de téléphone',
  nameMissing: 'Saisissez votre nom.',
  emailWrong: 'Saisissez une adresse e-mail, par exemple anne@example.com.',
  phoneWrong:
    'Saisissez un numéro de téléphone avec son indicatif international, par exemple +33 1 42 76 40 40.',
  continueToPayment: 'Continuer vers le paiement',
  continueToYourCard: 'Continuer vers votre carte',

  processingPayment: 'Votre paiement est en cours de traitement',
  savingCard: 'Votre carte est en cours d’enregistrement',
  pageReloads:
    'Cette page se recharge toutes les quelques secondes. Vous pouvez la laisser ouverte ou revenir plus tard : vous ne serez pas débité deux fois.',
  lockedTitle: 'Cette page n’accepte plus de cartes',
  locked:
    'Trop de cartes ont été refusées ici et rien n’a été débité. Demandez un nouveau lien à {name} si vous souhaitez réessayer.',
  noGatewayTitle: 'Il n’est pas encore possible de saisir une carte ici',
  noGateway:
    '{name} ne peut pas encore accepter de cartes. Rien n’a été débité. Demandez à {name} quand réessayer.',
  unknownCheckout: 'Cette page de paiement n’existe pas',
  unknownPayment: 'Ce paiement n’existe pas',
  unknownSetup: 'Cette page d’enregistrement de carte n’existe pas',
  unknownUpdate: 'Cette page de changement de carte n’existe pas',
  unknownLink: 'Le lien est incomplet ou n’a jamais été valable. Rien n’a été débité.',
  confirmTitle: 'Encore une étape',
  confirm: 'Rien n’a encore été débité. Continuez pour envoyer la carte que vous avez saisie.',
  foreignFormTitle: 'Ce formulaire n’est plus valable',
  foreignForm: 'Ouvrez de nouveau la page. Rien n’a été débité.',
  embeddedTitle: 'Cette page ne peut pas faire partie d’une autre page',
  embedded: 'Elle s’ouvre uniquement dans sa propre fenêtre. Rien n’a été débité.',
  badFormTitle: 'Le formulaire n’a pas pu être lu',
  badForm: 'Revenez en arrière et réessayez. Rien n’a été débité.',
  tooManyTitle: 'Trop de tentatives',
  tooMany:
    'Trop de cartes ont été essayées ou refusées, ou trop de liens inconnus ont été ouverts, depuis votre réseau. Rien n’a été débité. Rouvrez le lien plus tard.',
  unavailableTitle: 'Un instant',
  unavailable:
    'Nous ne pouvons pas afficher cette page pour le moment. Rien n’est perdu : rechargez-la dans un instant et vous verrez où vous en êtes. Vous ne serez pas débité deux fois.',

  subscription: 'Abonnement',
  pay: 'Payer {amount}',
  startTrial: 'Commencer l’essai gratuit',
  today: 'Aujourd’hui',
  thereafter: 'Puis',
  afterThat: 'Ensuite',
  inAll: 'Au total',
  amountOnAfterDays: {
    one: '{amount} le {date}, après {count} jour gratuit',
    other: '{amount} le {date}, après {count} jours gratuits',
  },
  amountOnAfterWeeks: {
    one: '{amount} le {date}, après {count} semaine gratuite',
    other: '{amount} le {date}, après {count} semaines gratuites',
  },
  amountOnAfterMonths: {
    one: '{amount} le {date}, après {count} mois gratuit',
    other: '{amount} le {date}, après {count} mois gratuits',
  },
  amountOnAfterYears: {
    one: '{amount} le {date}, après {count} an gratuit',
    other: '{amount} le {date}, après {count} ans gratuits',
  },
  everyDay: { one: '{amount} par jour', other: '{amount} tous les {count} jours' },
  everyWeek: { one: '{amount} par semaine', other: '{amount} toutes les {count} semaines' },
  everyMonth: { one: '{amount} par mois', other: '{amount} tous les {count} mois' },
  everyYear: { one: '{amount} par an', other: '{amount} tous les {count} ans' },
  fromDate: '{charges}, à partir du {date}',
  payments: { one: '{count} paiement', other: '{count} paiements' },
  lastPaymentOn: '{payments}, le dernier le {date}',
  checkoutExpiredTitle: 'Cette page de paiement a expiré',
  checkoutExpired:
    'Rien n’a été débité. Demandez un nouveau lien à {name} si vous êtes toujours intéressé.',
  checkoutCancelledTitle: 'Ce paiement a été annulé',
  trialStartedTitle: 'Votre essai gratuit a commencé',
  trialStarted:
    'Rien n’a été débité aujourd’hui. Le premier paiement, de {amount}, aura lieu le {date}.',
  nextPaymentIs: 'Le prochain paiement, de {amount}, aura lieu le {date}.',
  lastPayment: 'C’était le dernier paiement. Plus rien ne sera débité.',
  subscriptionEndedTitle: 'Cet abonnement est terminé',
  paymentsReceived: {
    one: '{count} paiement a été reçu. Plus rien ne sera débité.',
    other: '{count} paiements ont été reçus. Plus rien ne sera débité.',
  },
  checkoutCompleteTitle: 'Cette commande est terminée',
  checkoutComplete: 'Il n’y a plus rien à faire ici.',

  linkGoneTitle: 'Ce lien ne peut pas être utilisé',
  linkGone:
    'Il est incomplet, il a expiré ou il a déjà été utilisé autant de fois que permis. Rien n’a été débité.',
  askSender: 'Demandez un nouveau lien à l’expéditeur.',
  linkBusyTitle: 'Ce lien a été utilisé trop souvent depuis votre réseau',
  linkBusy: 'Rien n’a été débité. Rouvrez le lien dans dix minutes ou depuis un autre réseau.',
  openLinkAgain: 'Ouvrez de nouveau le lien. Rien n’a été débité.',
  openLink: 'Ouvrir le lien',

  paymentTo: 'Paiement à {name}',
  toPayOnce: 'À payer, une fois',
  paidTo: '{amount} ont été payés à {name}.',
  refundedTitle: 'Ce paiement a été remboursé',
  refunded: '{amount} ont été payés à {name} et intégralement remboursés.',
  paymentExpiredTitle: 'Cette page de paiement a expiré',
  paymentExpired:
    'Rien n’a été débité. Demandez un nouveau lien à {name} si vous souhaitez toujours payer.',
  paymentCancelledTitle: 'Ce paiement a été annulé',

  saveCardWith: 'Enregistrer une carte auprès de {name}',
  canChargeLater: '{name} pourra la débiter plus tard, comme convenu avec vous.',
  saveCard: 'Enregistrer la carte',
  chargedToday: 'Débité aujourd’hui',
  cardSavedTitle: 'Votre carte a été enregistrée',
  canChargeNow: '{name} peut désormais débiter {card}, comme convenu avec vous.',
  nothingChargedNow: 'Rien n’a été débité maintenant.',
  setupExpiredTitle: 'Cette page a expiré',
  setupExpired:
    'Rien n’a été enregistré. Demandez un nouveau lien à {name} si vous le souhaitez toujours.',

  changeCard: 'Changer de carte',
  cardNow: 'Carte actuelle',
  noCard: 'Aucune',
  saveCardAndPay: 'Enregistrer la carte et payer {amount}',
  amountDue: '{amount}, à régler maintenant',
  nextPayment: 'Prochain paiement',
  amountOn: '{amount} le {date}',
  cardReplacedTitle: 'Votre carte a été remplacée',
  usedFromNowOn: 'La carte {card} est utilisée désormais.',
  yourCardUsedFromNowOn: 'Votre nouvelle carte est utilisée désormais.',
  nothingChargedForChange: 'Rien n’a été débité pour ce changement.',
  dueIsTriedNext: 'Le paiement dû de {amount} sera ensuite tenté avec cette carte.',
  duePaid: 'Le paiement dû a été effectué.',
  dueAmountPaid: 'Le paiement dû de {amount} a été effectué.',
  linkExpiredTitle: 'Ce lien a expiré',
  linkExpired: 'Rien n’a été modifié. Demandez un nouveau lien à {name}.',
  cannotChangeTitle: 'Votre carte ne peut pas être changée ici',
  notBegun:
    'Cet abonnement n’a pas encore commencé. Utilisez le lien que {name} vous a donné pour le commencer.',
  paused:
    'Cet abonnement est en pause et rien n’est débité. Vous pourrez changer votre carte dès qu’il reprendra.',
  ended: 'Cet abonnement est terminé. Plus rien ne sera débité.',
  tryLater: 'Réessayez plus tard.',
  newCardSavedTitle: 'Votre nouvelle carte a été enregistrée',
  newCardKept: 'Votre nouvelle carte a été enregistrée, mais le paiement de {amount} a été refusé.',
  useAnotherCard: 'Vous pouvez utiliser une autre carte.',
  noMoreCards: 'Cette page n’accepte plus de cartes. Demandez un nouveau lien à {name}.',
  dueDeclined:
    'Le paiement de {amount} a été refusé et rien n’a été débité. Utilisez une autre carte.',
  bankWantsConfirmation: 'Votre banque souhaite que vous confirmiez le paiement de {amount}',
  notConfirmed: 'Le paiement n’a pas été confirmé et rien n’a été débité. Vous pouvez réessayer.',
  confirmWithBank: 'Confirmer auprès de votre banque',
  continueToBank: 'Continuer vers votre banque',
  bankAsks: 'Votre banque vous demande de confirmer le paiement. Vous reviendrez ensuite ici.',
  orAnotherCard: 'Ou utilisez une autre carte :',
};
