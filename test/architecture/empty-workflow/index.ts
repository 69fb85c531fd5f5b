/** What the bundle of a workflow that does nothing holds is what every bundle must hold. */
export async function empty(): Promise<void> {}
