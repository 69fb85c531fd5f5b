/** Returns the form in which addresses are compared. Postgres's `lower` depends on the database's locale. */
export function emailNormalForm(email: string | null | undefined): string | null {
  if (email === null || email === undefined) return null;
  // The lower case of a sigma depends on its neighbours, so both forms become one.
  return email.trim().normalize('NFC').toLowerCase().replaceAll('ς', 'σ').normalize('NFC');
}
