/** Rejects if `work` takes longer; `work` then runs on. */
export async function within<T>(
  timeoutMs: number,
  work: Promise<T>,
  overdue: () => Error = () => new Error(`no answer within ${timeoutMs / 1_000} s`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const isOver = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(overdue()), timeoutMs);
  });
  try {
    return await Promise.race([work, isOver]);
  } finally {
    clearTimeout(timer);
  }
}
