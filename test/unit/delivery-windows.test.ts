import { describe, expect, it } from 'vitest';
import { createDeliveryWindows } from '../../activities/delivery-windows.ts';

describe('a delivery window', () => {
  it('gives each endpoint as many slots as the limit [D-54]', () => {
    const windows = createDeliveryWindows(2);
    const free = windows.take('a');
    expect(free).not.toBeNull();
    expect(windows.take('a')).not.toBeNull();
    expect(windows.take('a')).toBeNull();
    expect(windows.take('b')).not.toBeNull();
    free?.();
    expect(windows.take('a')).not.toBeNull();
    expect(windows.take('a')).toBeNull();
  });

  it('gives new slots only to the draining queue, within the same limit, during a drain [D-54]', () => {
    const windows = createDeliveryWindows(2);
    const free = windows.take('a');
    const drain = windows.beginDrain('a');
    expect(windows.take('a')).toBeNull();
    const freeDrain = drain.take();
    expect(freeDrain).not.toBeNull();
    expect(drain.take()).toBeNull();
    free?.();
    expect(windows.take('a')).toBeNull();
    expect(drain.take()).not.toBeNull();
    freeDrain?.();
    drain.end();
    expect(windows.take('a')).not.toBeNull();
  });

  it('gives the next free slot of a quick endpoint to the first caller that waits [D-54]', async () => {
    const windows = createDeliveryWindows(1, { waitMs: 60_000, quickMs: 60_000 });
    const free = windows.take('a');
    const given: string[] = [];
    const wait = async (name: string): Promise<void> => {
      const slot = await windows.takeSoon('a');
      given.push(slot ? name : `${name}: none`);
      slot?.();
    };
    const waits = [wait('first'), wait('second')];
    // A third caller does not overtake the two waiting callers.
    expect(windows.take('a')).toBeNull();
    free?.();
    await Promise.all(waits);
    expect(given).toEqual(['first', 'second']);
    expect(windows.take('a')).not.toBeNull();
  });

  it('refuses a caller when the endpoint is slow, the wait times out or a drain runs [D-54]', async () => {
    const slow = createDeliveryWindows(1, { waitMs: 60_000, quickMs: 0 });
    slow.take('a');
    expect(await slow.takeSoon('a')).toBeNull();

    const impatient = createDeliveryWindows(1, { waitMs: 1, quickMs: 60_000 });
    const free = impatient.take('a');
    expect(await impatient.takeSoon('a')).toBeNull();
    free?.();
    expect(impatient.take('a')).not.toBeNull();

    const drained = createDeliveryWindows(1, { waitMs: 60_000, quickMs: 60_000 });
    drained.take('a');
    const waiting = drained.takeSoon('a');
    const drain = drained.beginDrain('a');
    expect(await waiting).toBeNull();
    expect(await drained.takeSoon('a')).toBeNull();
    drain.end();
  });
});
