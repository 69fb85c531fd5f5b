/** The samples of a page in the text format of Prometheus, by series: `name` or `name{label="value",…}`. */
export type Page = ReadonlyMap<string, number>;

const WITHIN_MS = 10_000;

export async function scrape(port: number): Promise<Page> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { signal })).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
