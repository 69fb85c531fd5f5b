import { ApplicationFailure } from '@temporalio/common';

/** How long a step may take inside a workflow task, whose own time-out is 6 s. */
const LOCAL_BUDGET_MS = 3_000;

/**
 * Wraps activities for use as local activities. A call that takes longer than 3 s fails, and the workflow
 * sends it to the activity queue. The work itself continues here and may still record its outcome. This
 * is safe: every activity may run twice at once.
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
  const message = `did not end within ${budgetMs / 1_000} s`;
  return ApplicationFailure.create({ type: 'local_budget_over', message, nonRetryable: true });
}
