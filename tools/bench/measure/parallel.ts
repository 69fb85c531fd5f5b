import PQueue from 'p-queue';

/** At most `width` items at a time. After the first failure, starts no further item. */
export function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const queue = new PQueue({ concurrency: width });
  return queue.addAll(items.map((item) => () => work(item))).finally(() => queue.clear());
}
