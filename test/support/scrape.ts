import type { Page } from '../../tools/scripts/client/scrape.ts';

/** The names of the metrics on a page, also of those without a sample. */
export async function metricNames(port: number): Promise<string[]> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name);
}

/** The sum of the samples of a metric whose series contain each of `labels`. */
export function total(page: Page, name: string, ...labels: string[]): number {
  let sum = 0;
  for (const [series, value] of page) {
    const isMetric = series === name || series.startsWith(`${name}{`);
    if (isMetric && labels.every((label) => series.includes(label))) sum += value;
  }
  return sum;
}

/** The status and the text of a probe. */
export async function probe(port: number, path: string): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return [response.status, (await response.text()).trim()];
}
