/** False for NUL characters and lone surrogates, which Postgres cannot store in text. */
export function isStorable(value: string): boolean {
  return !value.includes('\0') && !/\p{Surrogate}/u.test(value);
}

/** True if the text has at most `max` code points, which Postgres and JSON Schema call characters. */
export function hasAtMost(value: string, max: number): boolean {
  // A code point has one or two units, so most texts need no count.
  return value.length <= max || (value.length <= 2 * max && Array.from(value).length <= max);
}
