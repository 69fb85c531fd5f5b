import type { EventType } from './events.ts';

/** The endpoint of a webhook configuration whose events are sent to the payers, as e-mails. */
export const MAIL_ENDPOINT = 'mailto:payer';

/** The types of events of which an e-mail is made. */
export const MAIL_EVENT_TYPES = [
  'intent.success',
  'intent.failed',
  'subscription.trialing',
  'subscription.renewal_upcoming',
  'subscription.trial_ending',
  'subscription.amount_changing',
  'payment_method.expiring',
  'subscription.ended',
  'cancellation.received',
  'withdrawal.received',
  'customer.portal_requested',
] as const satisfies readonly EventType[];
export type MailEventType = (typeof MAIL_EVENT_TYPES)[number];

export const isMailed = (type: string): type is MailEventType =>
  MAIL_EVENT_TYPES.some((mailed) => mailed === type);
