import { describe, expect, it } from 'vitest';
import { createPlaces } from '../../activities/endpoint-places.ts';

const LONG_MS = 60_000;
const AT_ONCE_MS = 0;

describe('places at an endpoint', () => {
  it('are as many as said, for each endpoint apart [D-54]', async () => {
    const places = createPlaces(2);
    expect(await places.take('a', AT_ONCE_MS)).not.toBeNull();
    expect(await places.take('a', AT_ONCE_MS)).not.toBeNull();
    expect(await places.take('a', AT_ONCE_MS)).toBeNull();
    expect(await places.take('b', AT_ONCE_MS)).not.toBeNull();
  });

  it('go to those who wait in the order they came, and are free after the last [D-54]', async () => {
    const places = createPlaces(1);
    const leaveFirst = await places.take('a', LONG_MS);
    const order: string[] = [];
    const wait = async (name: string) => {
      const leave = await places.take('a', LONG_MS);
      order.push(name);
      leave?.();
    };
    const waiting = [wait('second'), wait('third')];
    expect(await places.take('a', AT_ONCE_MS)).toBeNull();
    expect(order).toEqual([]);

    leaveFirst?.();
    await Promise.all(waiting);
    expect(order).toEqual(['second', 'third']);
    expect(await places.take('a', AT_ONCE_MS)).not.toBeNull();
    expect(await places.take('a', AT_ONCE_MS)).toBeNull();
  });

  it('are not given to those who went away [D-54]', async () => {
    const places = createPlaces(1);
    const leave = await places.take('a', LONG_MS);
    expect(await places.take('a', AT_ONCE_MS)).toBeNull();
    leave?.();
    expect(await places.take('a', AT_ONCE_MS)).not.toBeNull();
  });
});
