import type { FeedItem } from '../../../client/index.ts';
import { cells, printable, styled } from '../../../cli/command-line/terminal.ts';

const COLUMNS = [19, 30, 8, 30, 5];
const SUBJECTS = ['subscriptionId', 'intentId', 'setupMethodId', 'pmId', 'gateway'] as const;

/** Time (on a test clock in its time), type, status, subject, number in the stream, and id of an event. */
export function eventLine(item: FeedItem): string {
  const fields: Readonly<Record<string, unknown>> = { ...item.event };
  const textOf = (name: string): string => {
    const value = fields[name];
    return typeof value === 'string' ? printable(value) : '';
  };
  const subject = SUBJECTS.map(textOf).find((text) => text !== '') ?? '';
  const time = new Date(item.eventTime).toISOString().slice(0, 19).replace('T', ' ');
  const values = [time, printable(item.eventType), textOf('status'), subject, `#${item.sequence}`];
  const [first = '', type = '', ...rest] = cells(COLUMNS, values);
  return [styled('dim', first), styled('bold', type), ...rest, printable(item.eventId)].join('  ');
}
