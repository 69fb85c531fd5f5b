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
  const isGood = eventType === 'subscription.cycle_charged';
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
  if (event.eventType === 'intent.failed') return 'declined';
  if (event.eventType !== 'subscription.cycle_charged') return '';
  return `${(Number(event['amount']) / 100).toFixed(2)} ${String(event['currency'])}`;
}

function signatureText(webhook: ReceivedWebhook): string {
  const mark = (isValid: boolean): string => (isValid ? '✓' : '✗');
  const { isStandardSignatureValid: standard, isXpaySignatureValid: xpay } = webhook;
  return `${mark(standard)} sha256  ${mark(xpay)} sha512`;
}
