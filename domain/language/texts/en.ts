/**
 * Every language has the same keys, with the same placeholders in braces. A text that depends on a number has one
 * form for each category of `Intl.PluralRules`.
 */
export const en = {
  // Every page
  errorTitle: 'Error: {title}',
  timeInUtc: '{time} (UTC)',
  datesInUtc: 'Dates are in UTC.',
  amount: 'Amount',
  continue: 'Continue',
  tryAgain: 'Try again',
  openPage: 'Open the page',
  continueTo: 'Continue to {name}',
  returnTo: 'Return to {name}',
  cancelAndReturn: 'Cancel and return to {name}',
  termsLink: 'Terms and conditions',
  supportLink: 'Help and contact',
  nothingMoreCharged: 'Nothing was charged, and nothing will be.',
  paymentReceived: 'Thank you: your payment was received',

  // Card form
  payByCard: 'Pay by card',
  yourCard: 'Your card',
  newCard: 'New card',
  nameOnCard: 'Name on card',
  cardNumber: 'Card number',
  expiry: 'Expiry',
  expiryFormat: 'MM / YY',
  cvc: 'CVC',
  correctFields: 'Correct the marked fields. Nothing was charged.',
  numberMissing: 'Enter the card number.',
  numberUnreadable: 'Enter the card number with digits only.',
  numberTooShort: 'The card number is too short. Check that no digit is missing.',
  numberTooLong: 'The card number is too long. Check that no digit was typed twice.',
  numberMistyped: 'The card number is not right. Compare each digit with your card.',
  expiryUnreadable: 'Enter month and year as they are printed on the card, such as 08 / 29.',
  expiryPast: 'This date is in the past. Check the expiry, or use another card.',
  cvcThree: 'Enter the 3 digits on the back of the card.',
  cvcFour: 'Enter the 4 digits on the front of the card.',

  // Declined and saved cards
  paymentDeclined: 'Your payment was declined and nothing was charged.',
  cardDeclined: 'Your card was declined and was not saved. Nothing was charged.',
  checkDetails: 'Check the details and try again, or use another card.',
  cardEnding: '{brand} ending in {digits}',

  // Test mode
  testMode: 'Test mode: no money moves.',
  testCards: 'Test mode: test cards',
  testCardHint: 'Any expiry in the future, any name, a CVC of 3 digits (4 on American Express).',

  // The gateway's page for a card
  enterAtCompany: 'You enter your card on a page of {company}, which processes cards for {name}.',
  enterAtCompanyNow: 'You enter your card on a page of {company}.',
  continueToCard: 'Continue to enter your card',
  securedBy: 'Secured by {company}',
  entryFailedTitle: 'Your card cannot be entered right now',
  entryFailed:
    'The page of {company} did not open. Nothing was charged, and nothing is lost. Try again in a moment.',
  chargedOnceEntered: 'As soon as you have entered it, {amount} is charged.',
  trialOnceEntered:
    'As soon as you have entered it, your free trial starts. Nothing is charged today.',
  nothingIsChargedToday: 'Nothing is charged today.',

  // Details form
  yourDetails: 'Your details',
  name: 'Name',
  email: 'E-mail address',
  changeEmail: 'Change e-mail address',
  phone: 'Phone number',
  nameMissing: 'Enter your name.',
  emailWrong: 'Enter an e-mail address, such as ann@example.com.',
  phoneWrong: 'Enter a phone number with its international prefix, such as +44 20 7946 0000.',
  continueToPayment: 'Continue to payment',
  continueToYourCard: 'Continue to your card',

  // Pages without a form
  processingPayment: 'Your payment is being processed',
  savingCard: 'Your card is being saved',
  pageUpdates:
    'This page updates every few seconds. You can leave it open or come back later: you will not be charged twice.',
  lockedTitle: 'This page takes no more cards',
  locked:
    'Too many cards were declined here, and nothing was charged. Ask {name} for a new link if you want to try again.',
  noGatewayTitle: 'Cards cannot be entered here yet',
  noGateway: '{name} cannot take cards yet. Nothing was charged. Ask {name} when to try again.',
  unknownPage: 'There is no such page',
  unknownLink: 'The link is incomplete, or it was never valid. Nothing was charged.',
  confirmTitle: 'One more step',
  confirm: 'Nothing was charged yet. Continue to submit the card that you entered.',
  foreignFormTitle: 'This form is not valid any more',
  foreignForm: 'Open the page again. Nothing was charged.',
  embeddedTitle: 'This page cannot be part of another page',
  embedded: 'It opens only in a window of its own. Nothing was charged.',
  badFormTitle: 'The form could not be read',
  badForm: 'Go back and try again. Nothing was charged.',
  tooManyTitle: 'Too many tries',
  tooMany:
    'Too many tries were made from your network. This one had no effect. You can try again in {minutes}, at {time}.',
  unavailableTitle: 'Just a moment',
  unavailable:
    'We cannot show this page right now. Nothing is lost: reload it in a moment, and you will see how things stand. You will not be charged twice.',

  // Receipt
  paidAmount: 'Paid',
  refundedAmount: 'Refunded',
  productLabel: 'Product',
  merchantLabel: 'Merchant',
  cardLabel: 'Card',
  dateLabel: 'Date',
  referenceLabel: 'Reference',

  // Checkout
  subscription: 'Subscription',
  pay: 'Pay {amount}',
  startTrial: 'Save card and start free trial',
  payWith: 'Pay with {brand} {digits}',
  startTrialWith: 'Start free trial with {brand} {digits}',
  today: 'Today',
  todayUpfront: 'Upfront amount, today',
  thereafter: 'Then',
  afterThat: 'After that',
  inAll: 'In all',
  amountOnAfter: '{amount} on {date}, after {free}',
  freeDays: { one: '{count} day free', other: '{count} days free' },
  freeWeeks: { one: '{count} week free', other: '{count} weeks free' },
  freeMonths: { one: '{count} month free', other: '{count} months free' },
  freeYears: { one: '{count} year free', other: '{count} years free' },
  everyDay: { one: '{amount} every day', other: '{amount} every {count} days' },
  everyWeek: { one: '{amount} every week', other: '{amount} every {count} weeks' },
  everyMonth: { one: '{amount} every month', other: '{amount} every {count} months' },
  everyYear: { one: '{amount} every year', other: '{amount} every {count} years' },
  fromDate: '{charges}, from {date}',
  payments: { one: '{count} payment', other: '{count} payments' },
  amountInPayments: '{amount} in {payments}',
  lastPaymentOn: '{payments}, the last on {date}',
  consentSubscription:
    'By continuing, you allow {name} to charge this card for each payment of this subscription, until it ends or is cancelled.',
  consentSavedCard:
    'By continuing, you allow {name} to charge this card later for payments that you agree with them, until you withdraw this permission.',
  trialStartedTitle: 'Your free trial has started',
  trialStarted: 'Nothing was charged today. The first payment is {amount} on {date}.',
  nextPaymentIs: 'The next payment is {amount} on {date}.',
  lastPayment: 'This was the last payment. Nothing more will be charged.',
  subscriptionEndedTitle: 'This subscription has ended',
  paymentsReceived: {
    one: '{count} payment was received. Nothing more will be charged.',
    other: '{count} payments were received. Nothing more will be charged.',
  },
  checkoutCompleteTitle: 'This checkout is complete',
  checkoutComplete: 'There is nothing more to do here.',

  // Link
  linkGoneTitle: 'This link cannot be used',
  linkGone:
    'It is incomplete, it has expired, or it was used as often as it may be. Nothing was charged.',
  askSender: 'Ask the sender for a new link.',
  askMerchant: 'Ask {name} for a new link.',
  linkBusyTitle: 'This link was begun too often from your network',
  linkBusy: 'Nothing was charged. Open the link again in ten minutes, or from another network.',

  // Payment
  paymentTo: 'Payment to {name}',
  toPayOnce: 'To pay, once',
  paidTo: '{amount} was paid to {name}.',
  refundedTitle: 'This payment was refunded',
  refunded: '{amount} was paid to {name} and refunded in full.',
  paymentExpired: 'Nothing was charged. Ask {name} for a new link if you still want to pay.',
  cancelledTitle: 'This payment was cancelled',

  // Setup
  saveCardWith: 'Save a card with {name}',
  canChargeLater: '{name} will be able to charge it later, as you agreed with them.',
  saveCard: 'Save card',
  chargedToday: 'Charged today',
  cardSavedTitle: 'Your card was saved',
  canChargeNow: '{name} can charge {card} from now on, as you agreed with them.',
  nothingChargedNow: 'Nothing was charged now.',
  expiredTitle: 'This page has expired',
  setupExpired: 'Nothing was saved. Ask {name} for a new link if you still want to.',

  // Card replacement
  changeCard: 'Change your card',
  cardNow: 'Card now',
  saveCardAndPay: 'Save card and pay {amount}',
  amountIsDue: '{amount} is due',
  payAgain: 'Pay with {brand} {digits} again',
  nextPayment: 'Next payment',
  dueSince: 'Due since',
  dueReason: 'What happened',
  nextTry: 'Next try',
  withPresentCard: '{date}, with the present card',
  noNextTry: 'None with the present card',
  reasonDeclined: 'The card was declined',
  reasonFunds: 'There was not enough money in the account',
  reasonExpired: 'The card has expired',
  reasonDetails: 'The card details were not accepted',
  reasonUnusable: 'The card can no longer be charged',
  reasonTechnical: 'The payment could not be processed at that time',
  amountOn: '{amount} on {date}',
  cardReplacedTitle: 'Your card was replaced',
  usedFromNowOn: '{card} is used from now on.',
  yourCardUsedFromNowOn: 'Your card is used from now on.',
  dueIsTriedNext: 'The payment of {amount} that is due is tried with it next.',
  duePaid: 'The payment that was due went through.',
  dueAmountPaid: 'The payment of {amount} that was due went through.',
  cannotChangeTitle: 'Your card cannot be changed here',
  notBegun: 'This subscription has not begun yet. Use the link that {name} gave you to start it.',
  paused: 'None while the subscription is paused',
  ended: 'This subscription has ended. Nothing more will be charged.',
  tryLater: 'Try again later.',
  newCardSavedTitle: 'Your new card was saved',
  newCardKept: 'Your new card was saved, but the payment of {amount} was declined.',
  useAnotherCard: 'You can use another card.',
  noMoreCards: 'This page takes no more cards. Ask {name} for a new link.',
  dueDeclined: 'The payment of {amount} was declined, and nothing was charged. Use another card.',
  bankWantsConfirmation: 'Your bank wants you to confirm the payment of {amount}',
  notConfirmed: 'The payment was not confirmed, and nothing was charged. You can try again.',
  confirmWithBank: 'Confirm with your bank',
  continueToBank: 'Continue to your bank',
  bankAsks: 'Your bank asks you to confirm the payment. You come back here afterwards.',
  orAnotherCard: 'Or use another card:',

  // Cancellation and withdrawal
  cancelContract: 'Cancel a contract with {name}',
  withdrawHere: 'Withdraw from a contract with {name}',
  noAccountNeeded:
    'You need no account. {name} receives what you declare here, with the date and the time.',
  contractNumber: 'Number of the contract',
  contractNumberHint: 'It is on your receipt, as the reference.',
  contractNumberMissing: 'Enter the number of the contract. It is on your receipt.',
  cancellationKind: 'Kind of cancellation',
  ordinaryCancellation: 'Ordinary cancellation',
  forCause: 'Cancellation for good cause',
  cause: 'Good cause',
  reasonMissing: 'Enter the good cause, in at most 1,000 characters.',
  reasonUnneeded: 'An ordinary cancellation needs no cause. Delete it, or choose the other kind.',
  endOn: 'End of the contract',
  endOnHint: 'Leave it empty for the earliest possible date.',
  endOnWrong: 'Enter a date, such as 2027-03-31.',
  checkDeclaration: 'Check what you declare',
  change: 'Change',
  cancellationReceived: 'Your cancellation was received',
  withdrawalReceived: 'Your withdrawal was received',
  keepConfirmation:
    '{name} received this declaration. Keep this confirmation: print the page or download it.',
  downloadConfirmation: 'Download this confirmation',
  receivedAt: 'Received on',
  confirmationNumber: 'Number of this confirmation',
  earliestDate: 'The earliest possible date',
  declaration: 'Declaration',
  iCancel: 'I cancel this contract.',
  iCancelForCause: 'I cancel this contract for good cause.',
  iWithdraw: 'I withdraw from this contract.',

  // Payer's own page
  portalTitle: 'Your subscriptions with {name}',
  portalOpensHere: 'The page opens in this browser only, until {time}.',
  portalByMail:
    'Enter the e-mail address that you gave {name}. You will get an e-mail with a link to your subscriptions and receipts.',
  portalMailed:
    'If {name} knows this address, you will get an e-mail with the link in a few minutes.',
  noSubscription: 'There is no subscription.',
  yourPayments: 'Your payments',
  cancelSubscription: 'Cancel subscription',
  keepSubscription: 'Keep subscription',
  pauseSubscription: 'Pause subscription',
  resumeSubscription: 'Resume subscription',
  endsOn: 'Ends on',
  endsThen:
    'It ends on {date}, and nothing more will be charged. Until then you can change your mind.',
  endsAtOnce: 'It ends at once, and nothing more will be charged.',

  // E-mails
  trialEndsOn: 'Your free trial ends on {date}',
  renewsOn: 'Your subscription renews on {date}',
  priceChanges: 'The price of your subscription changes',
  cardExpiresFirst: 'Your card expires before the next payment',
  keepMail: '{name} received this declaration. Keep this e-mail as your confirmation.',
  portalMail:
    'The link opens your page in one browser only, until {time}. If you did not ask for it, ignore this e-mail.',
  whyMail: 'You receive this e-mail because you paid {name} or subscribed with them.',
} as const;

export type Forms = { readonly [Category in Intl.LDMLPluralRule]?: string } & {
  readonly other: string;
};

export type Texts = {
  readonly [Key in keyof typeof en]: (typeof en)[Key] extends string ? string : Forms;
};
