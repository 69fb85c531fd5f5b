/** The samples of a page in the text format of Prometheus, by series: `name` or `name{label="value",…}`. */
export type Page = ReadonlyMap<string, number>;

export async function scrape(port: number): Promise<Page> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

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
