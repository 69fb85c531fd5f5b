import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createEndpointWakes } from '../../activities/endpoint-wakes.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function wakesOf() {
  const woken: string[] = [];
  const wakes = createEndpointWakes(async ({ configId }) => {
    woken.push(configId);
  });
  const request = (configId: string) => wakes.request({ merchantId: 'mer_1', configId });
  return { woken, wakes, request };
}

describe('wake-ups of an endpoint queue', () => {
  it('are sent at once; all requests of the next 500 ms become one further wake-up [D-54]', async () => {
    const { woken, request } = wakesOf();
    for (let count = 0; count < 100; count += 1) request('whc_1');
    expect(woken).toEqual(['whc_1']);
    await vi.advanceTimersByTimeAsync(499);
    request('whc_1');
    expect(woken).toEqual(['whc_1']);
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toEqual(['whc_1', 'whc_1']);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(woken).toHaveLength(2);
    request('whc_1');
    expect(woken).toHaveLength(3);
  });

  it('do not delay the wake-ups of another endpoint [D-54]', () => {
    const { woken, request } = wakesOf();
    request('whc_1');
    request('whc_2');
    expect(woken).toEqual(['whc_1', 'whc_2']);
  });

  it('are sent without delay by a flush [D-54]', async () => {
    const { woken, wakes, request } = wakesOf();
    request('whc_1');
    request('whc_1');
    await wakes.flush();
    expect(woken).toEqual(['whc_1', 'whc_1']);
  });
});
