import type { Act, StoryRun } from './story.ts';

/** Makes the sandbox gateway decline the next `count` charges of the subscription. */
export const declineNext =
  (count: number): Act =>
  ({ start, subscriptionId }) =>
    start.declineNext(subscriptionId, 'insufficient_funds', count);

/** The sandbox gateway's record of the subscription's charges. */
export async function readBook({ start, subscriptionId }: StoryRun): Promise<string[]> {
  const book = await start.book(subscriptionId);
  return book.map(
    ({ outcome, amountMinor, currency, code }) =>
      `${outcome} ${amountMinor} ${currency}${code === null ? '' : `, ${code}`}`,
  );
}
