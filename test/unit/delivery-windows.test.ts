import { describe, expect, it } from 'vitest';
import { createDeliveryWindows } from '../../activities/delivery-windows.ts';

const a = { merchantId: 'mer_1', configId: 'whc_a' };
const b = { merchantId: 'mer_1', configId: 'whc_b' };

describe('a delivery window', () => {
  it('gives each endpoint slots up to its limit [D-54]', () => {
    const windows = createDeliveryWindows({ ofEndpoint: 2, ofMerchant: 10 });
    const free = windows.take(a);
    expect(free).not.toBeNull();
    expect(windows.take(a)).not.toBeNull();
    expect(windows.take(a)).toBeNull();
    expect(windows.take(b)).not.toBeNull();
    free?.();
    expect(windows.take(a)).not.toBeNull();
    expect(windows.take(a)).toBeNull();
  });

  it('gives new slots only to the draining queue, within the same limit, during a drain [D-54]', () => {
    const windows = createDeliveryWindows({ ofEndpoint: 2, ofMerchant: 10 });
    const free = windows.take(a);
    const drain = windows.beginDrain(a);
    expect(windows.take(a)).toBeNull();
    const freeDrain = drain.take();
    expect(freeDrain).not.toBeNull();
    expect(drain.take()).toBeNull();
    free?.();
    expect(windows.take(a)).toBeNull();
    expect(drain.take()).not.toBeNull();
    freeDrain?.();
    drain.end();
    expect(windows.take(a)).not.toBeNull();
  });

  it('gives the next free slot of a quick endpoint to the first caller that waits [D-54]', async () => {
    const windows = createDeliveryWindows(
      { ofEndpoint: 1, ofMerchant: 10 },
      { waitMs: 60_000, quickMs: 60_000 },
    );
    const free = windows.take(a);
    const given: string[] = [];
    const wait = async (name: string): Promise<void> => {
      const slot = await windows.takeSoon(a);
      given.push(slot ? name : `${name}: none`);
      slot?.();
    };
    const waits = [wait('first'), wait('second')];
    // A third caller does not overtake the two waiting callers.
    expect(windows.take(a)).toBeNull();
    free?.();
    await Promise.all(waits);
    expect(given).toEqual(['first', 'second']);
    expect(windows.take(a)).not.toBeNull();
  });

  it('refuses a caller when the endpoint is slow, the wait times out or a drain runs [D-54]', async () => {
    const slow = createDeliveryWindows(
      { ofEndpoint: 1, ofMerchant: 10 },
      { waitMs: 60_000, quickMs: 0 },
    );
    slow.take(a);
    expect(await slow.takeSoon(a)).toBeNull();

    const impatient = createDeliveryWindows(
      { ofEndpoint: 1, ofMerchant: 10 },
      { waitMs: 1, quickMs: 60_000 },
    );
    const free = impatient.take(a);
    expect(await impatient.takeSoon(a)).toBeNull();
    free?.();
    expect(impatient.take(a)).not.toBeNull();

    const drained = createDeliveryWindows(
      { ofEndpoint: 1, ofMerchant: 10 },
      { waitMs: 60_000, quickMs: 60_000 },
    );
    drained.take(a);
    const waiting = drained.takeSoon(a);
    const drain = drained.beginDrain(a);
    expect(await waiting).toBeNull();
    expect(await drained.takeSoon(a)).toBeNull();
    drain.end();
  });
});

describe('the delivery windows of one merchant', () => {
  const other = { merchantId: 'mer_2', configId: 'whc_a' };

  it('share one limit, also during drains, and take no slot of another merchant [D-55]', () => {
    const windows = createDeliveryWindows({ ofEndpoint: 2, ofMerchant: 3 });
    const frees = [windows.take(a), windows.take(a), windows.take(b)];
    expect(frees).not.toContain(null);
    expect(windows.take(b)).toBeNull();
    const drain = windows.beginDrain(b);
    expect(drain.take()).toBeNull();
    expect(windows.take(other)).not.toBeNull();
    frees[0]?.();
    expect(drain.take()).not.toBeNull();
    expect(drain.take()).toBeNull();
    drain.end();
  });

  it('give a freed slot to a caller that waits for another endpoint of the merchant [D-55]', async () => {
    const windows = createDeliveryWindows(
      { ofEndpoint: 2, ofMerchant: 2 },
      { waitMs: 60_000, quickMs: 60_000 },
    );
    windows.take(b);
    const free = windows.take(a);
    const waiting = windows.takeSoon(b);
    free?.();
    expect(await waiting).not.toBeNull();
    expect(windows.take(a)).toBeNull();
  });
});
