/**
 * Bounds how many things run at once per key. `take` answers the function that gives the place back,
 * or null when none came free within `patienceMs`. Places are given in the order of asking.
 */
export interface Places {
  take(key: string, patienceMs: number): Promise<(() => void) | null>;
}

export function createPlaces(perKey: number): Places {
  const queues = new Map<string, { taken: number; waiting: Set<() => void> }>();

  return {
    async take(key, patienceMs) {
      const queue = queues.get(key) ?? { taken: 0, waiting: new Set() };
      queues.set(key, queue);
      if (queue.taken < perKey) queue.taken += 1;
      // Whoever gives a place back hands it on, so the count stays as it is.
      else if (!(await isHandedOn(queue.waiting, patienceMs))) return null;

      return () => {
        const [next] = queue.waiting;
        if (next) next();
        else queue.taken -= 1;
        if (queue.taken === 0) queues.delete(key);
      };
    },
  };
}

function isHandedOn(waiting: Set<() => void>, patienceMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const accept = (): void => {
      clearTimeout(timer);
      waiting.delete(accept);
      resolve(true);
    };
    const timer = setTimeout(() => {
      waiting.delete(accept);
      resolve(false);
    }, patienceMs);
    waiting.add(accept);
  });
}
