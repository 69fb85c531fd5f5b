/** False for NUL characters and lone surrogates, which Postgres cannot store in text. */
export function isStorable(value: string): boolean {
  return !value.includes('\0') && !/\p{Surrogate}/u.test(value);
}
