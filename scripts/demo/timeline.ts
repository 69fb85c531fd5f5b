import type { ReceivedWebhook } from '../../test/support/webhook-receiver.ts';
import { cells, minuteText, print, styled } from '../client/terminal.ts';
import type { Column } from '../client/terminal.ts';

const COLUMNS: readonly Column[] = [
  { width: 16 },
  { width: 12, align: 'right' },
  { width: 8 },
  { width: 28 },
  { width: 18 },
];

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

/**
 * Prints one line for each event. If several events have the same time, only the first line shows the time.
 */
export function printEvents(webhooks: readonly ReceivedWebhook[]): void {
  let previousDate = '';
  for (const webhook of webhooks) {
    const date = minuteText(webhook.event.eventTime);
    printEvent(webhook, date === previousDate ? '' : date);
    previousDate = date;
  }
}

function printEvent(webhook: ReceivedWebhook, date: string): void {
  const { eventType, amount, currency, status } = webhook.event;
  const isPaid = eventType === 'subscription.cycle_charged';
  const isDeclined = eventType === 'intent.failed';
  const charged = isPaid ? `${(Number(amount) / 100).toFixed(2)} ${String(currency)}` : '';
  const [dateCell, chargedCell, statusCell, eventCell, signatureCell] = cells(COLUMNS, [
    date,
    isDeclined ? 'declined' : charged,
    eventType.startsWith('subscription.') ? String(status) : '',
    eventType,
    signatureText(webhook),
  ]);
  const isValid = webhook.isStandardSignatureValid && webhook.isXpaySignatureValid;
  const line = [
    styled('bold', dateCell ?? ''),
    styled(isDeclined ? 'red' : 'green', chargedCell ?? ''),
    styled(status === 'UNPAID' ? 'yellow' : 'cyan', statusCell ?? ''),
    eventCell,
    styled(isValid ? 'green' : 'red', signatureCell?.trimEnd() ?? ''),
  ];
  print(`  ${line.join('  ')}`);
}

function signatureText(webhook: ReceivedWebhook): string {
  const mark = (isValid: boolean): string => (isValid ? '✓' : '✗');
  const { isStandardSignatureValid: standard, isXpaySignatureValid: xpay } = webhook;
  return `${mark(standard)} sha256  ${mark(xpay)} sha512`;
}

/** Prints a step that causes no event. */
export function printStep(step: {
  date: string;
  charged: string;
  status: string;
  text: string;
}): void {
  const [date, charged, status] = cells(COLUMNS, [step.date, step.charged, step.status]);
  const line = [
    styled('bold', date ?? ''),
    styled(step.charged === 'declined' ? 'red' : 'green', charged ?? ''),
    styled(step.status === 'UNPAID' ? 'yellow' : 'cyan', status ?? ''),
    step.text,
  ];
  print(`  ${line.join('  ')}`.trimEnd());
}
