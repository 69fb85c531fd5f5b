export type CardOutcome =
  /** The outcome is in the database. */
  | { kind: 'decided' }
  | { kind: 'declined'; errorCode: string }
  /** The card was submitted and its outcome is unknown. */
  | { kind: 'pending' }
  /** The card was not submitted, because the outcome of another card is unknown. A repeat may submit the card. */
  | { kind: 'waiting' };
