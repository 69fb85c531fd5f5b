import { ApplicationFailure } from '@temporalio/common';

/** How long a step may take inside a workflow task: less than half of the task's own time-out. */
const LOCAL_BUDGET_MS = 3_000;

/**
 * The same activities for use as local ones: a call that is not over after 3 s fails, and the workflow
 * sends it to the activity queue. The work itself goes on here and may still record its outcome; that
 * is safe because every activity may run twice at once.
 */
export function withBudget<T extends object>(activities: T): T {
  const bounded = Object.entries(activities).map(([name, activity]) => [
    name,
    (...args: unknown[]) => within(LOCAL_BUDGET_MS, (activity as Activity)(...args)),
  ]);
  return Object.fromEntries(bounded) as T;
}

type Activity = (...args: unknown[]) => Promise<unknown>;

async function within<T>(budgetMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const isOver = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(budgetOver(budgetMs)), budgetMs);
  });
  try {
    return await Promise.race([work, isOver]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

function budgetOver(budgetMs: number): ApplicationFailure {
  const message = `not over after ${budgetMs / 1_000} s`;
  return ApplicationFailure.create({ type: 'local_budget_over', message, nonRetryable: true });
}
