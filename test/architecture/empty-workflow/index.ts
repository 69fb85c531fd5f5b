/** An empty workflow, whose bundle has only the code that every workflow bundle needs. */
export async function empty(): Promise<void> {}
