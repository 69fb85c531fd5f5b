/** Entries that each apply to `count` requests or events. They exist only in memory. */
export function createArmed<Entry extends { readonly count: number }>() {
  let armed: { readonly entry: Entry; hits: number }[] = [];
  return {
    add: (entry: Entry): void => void armed.push({ entry, hits: 0 }),
    /** All entries since the last `clear`, in the order in which they were added. */
    list: () => armed.map(({ entry, hits }) => ({ ...entry, hits })),
    clear: (): void => void (armed = []),
    /** Returns the first added entry that matches and is not used up, and counts a hit; null without one. */
    take: (matches: (entry: Entry) => boolean): Entry | null => {
      const hit = armed.find(({ entry, hits }) => hits < entry.count && matches(entry));
      if (hit === undefined) return null;
      hit.hits += 1;
      return hit.entry;
    },
  };
}
