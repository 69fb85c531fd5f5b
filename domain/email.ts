/**
 * Returns the form in which e-mail addresses are compared; null for no address. Code makes it, because `lower` in
 * Postgres depends on the database's locale.
 */
export function emailNormalForm(email: string | null | undefined): string | null {
  if (email === null || email === undefined) return null;
  // The lower case of a sigma depends on its neighbours, so both forms become one.
  return email.trim().normalize('NFC').toLowerCase().replaceAll('ς', 'σ').normalize('NFC');
}
