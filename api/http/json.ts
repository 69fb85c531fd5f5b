/** The strings and the punctuation of JSON text. */
const TOKEN = /"[^"\\]*(?:\\[^][^"\\]*)*"|[[\]{}:,]/g;

interface OpenValue {
  /** Names of an object's members so far; null for an array. */
  readonly names: Set<string> | null;
  /** Name or index of the member that is read. */
  at: string | number;
}

/**
 * Returns the path of the first member that an object has twice; null if there is none. `JSON.parse`, which must have
 * accepted the text before, keeps only the last of them.
 */
export function repeatedMember(json: string): string | null {
  const open: OpenValue[] = [];
  let text = '';
  for (const [token] of json.matchAll(TOKEN)) {
    const inner = open.at(-1);
    if (token === '{') open.push({ names: new Set(), at: '' });
    else if (token === '[') open.push({ names: null, at: 0 });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && typeof inner?.at === 'number') inner.at += 1;
    else if (token === ':' && inner?.names) {
      inner.at = JSON.parse(text) as string;
      if (inner.names.has(inner.at)) return pathText(open.map(({ at }) => at));
      inner.names.add(inner.at);
    } else text = token;
  }
  return null;
}

/** For example `script[2].times`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) => {
      if (typeof part === 'number') return `[${part}]`;
      return at === 0 ? String(part) : `.${String(part)}`;
    })
    .join('');
}
