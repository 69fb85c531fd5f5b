import type { ReceivedWebhook } from '../client/webhook-receiver.ts';
import { cells, minuteText, print, styled } from '../../../cli/command-line/terminal.ts';

const COLUMNS = [16, -12, 8, 30, 18];

export function printHeading(): void {
  const heading = cells(COLUMNS, [
    'date (UTC)',
    'charged',
    'status',
    'event received',
    'signatures',
  ]);
  print(styled('dim', `  ${heading.join('  ')}`.trimEnd()));
}

export function printNote(text: string): void {
  print(styled('dim', `  ${' '.repeat(16)}  ${text}`));
}

/** If several events have the same time, only the first line shows the time. */
export function printEvents(webhooks: readonly ReceivedWebhook[]): void {
  let previousDate = '';
  for (const webhook of webhooks) {
    const date = minuteText(webhook.event.eventTime);
    printEvent(webhook, date === previousDate ? '' : date);
    previousDate = date;
  }
}

function printEvent(webhook: ReceivedWebhook, date: string): void {
  const { eventType, status } = webhook.event;
  const isGood =
    eventType === 'subscription.cycle_charged' || webhook.event['disputeStatus'] === 'WON';
  const [dateCell, chargedCell, statusCell, eventCell, signatureCell] = cells(COLUMNS, [
    date,
    chargedText(webhook),
    eventType.startsWith('subscription.') ? String(status) : '',
    eventType,
    signatureText(webhook),
  ]);
  const isValid = webhook.isStandardSignatureValid && webhook.isXpaySignatureValid;
  const line = [
    styled('bold', dateCell ?? ''),
    styled(isGood ? 'green' : 'red', chargedCell ?? ''),
    styled(status === 'UNPAID' ? 'yellow' : 'cyan', statusCell ?? ''),
    eventCell,
    styled(isValid ? 'green' : 'red', signatureCell?.trimEnd() ?? ''),
  ];
  print(`  ${line.join('  ')}`);
}

function chargedText({ event }: ReceivedWebhook): string {
  switch (event.eventType) {
    case 'subscription.cycle_charged':
      return amountText(event);
    case 'intent.failed':
      return 'declined';
    case 'intent.refund_failed':
      return 'not refunded';
    case 'intent.disputed':
      return event['disputeStatus'] === 'OPEN'
        ? 'disputed'
        : `dispute ${String(event['disputeStatus']).toLowerCase()}`;
    default:
      return '';
  }
}

/** What the events of a step say of its charge: the amount, or `declined`. Empty without a charge. */
export function chargedIn(webhooks: readonly ReceivedWebhook[]): string {
  const paid = webhooks.find(({ event }) => event.eventType === 'intent.success');
  if (paid !== undefined) return amountText(paid.event);
  return webhooks.map(chargedText).find((each) => each !== '') ?? '';
}

function amountText(event: ReceivedWebhook['event']): string {
  return `${(Number(event['amount']) / 100).toFixed(2)} ${String(event['currency'])}`;
}

function signatureText(webhook: ReceivedWebhook): string {
  const mark = (isValid: boolean): string => (isValid ? '✓' : '✗');
  const { isStandardSignatureValid: standard, isXpaySignatureValid: xpay } = webhook;
  return `${mark(standard)} sha256  ${mark(xpay)} sha512`;
}

/** Prints one line for a step, in a part of the demo that does not print its events. */
export function printStep(date: string, charged: string, status: string, text: string): void {
  const [dateCell, chargedCell, statusCell] = cells(COLUMNS, [date, charged, status]);
  const line = [
    styled('bold', dateCell ?? ''),
    styled(charged === 'declined' ? 'red' : 'green', chargedCell ?? ''),
    styled(status === 'UNPAID' ? 'yellow' : 'cyan', statusCell ?? ''),
    text,
  ];
  print(`  ${line.join('  ')}`.trimEnd());
}
