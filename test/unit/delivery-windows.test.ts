import { describe, expect, it } from 'vitest';
import { createDeliveryWindows } from '../../activities/delivery-windows.ts';

describe('a delivery window', () => {
  it('has as many slots as its limit, for each endpoint apart [D-54]', () => {
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

  it('gives new slots to the queue alone while it drains, within the same limit [D-54]', () => {
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
});
