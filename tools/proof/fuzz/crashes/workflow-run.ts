import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import type { SubscriptionInput } from '../../../../workflows/subscription/messages.ts';
import { MONEY_MOVEMENT } from '../../../../workflows/activity-calls.ts';
import { Execution } from './execution.ts';
import type {
  ActivityTask,
  UpdateResponse,
  Job,
  Resolution,
  Task,
  WorkflowCode,
} from './execution.ts';

/** What a worker makes of an activity. `lost`: the worker is dead, or its result does not arrive. */
export type Work = (task: ActivityTask) => Promise<WorkResult>;
export type WorkResult = { value: unknown } | { error: ApplicationFailure } | 'lost';

export interface Surroundings {
  readonly code: WorkflowCode;
  /** Real time: that of the life, which moves also between a crash and the repeat. */
  readonly now: () => number;
  readonly answered: (answer: UpdateResponse) => void;
  /** True if a workflow task is completed now, although a local activity is still to run. */
  readonly isHeartbeatDue: () => boolean;
}

const EVENTS_OF_TASK = 3;

/** Temporal's record of one workflow: its completed tasks, and the jobs of the next one. A crash loses the memory. */
export class WorkflowRun {
  isEnded = false;
  readonly jobs: Job[] = [];
  private history: Task[] = [];
  private execution: Execution | null = null;
  private runs = 0;
  private startedAt = 0;
  private attempts = new Map<number, number>();
  private readonly surroundings: Surroundings;

  constructor(surroundings: Surroundings, input: SubscriptionInput) {
    this.surroundings = surroundings;
    this.start(input);
  }

  /** Starts a new run. Messages that no completed task has taken go to it. */
  start(input: SubscriptionInput): void {
    this.runs += 1;
    this.history = [];
    this.execution = null;
    this.attempts = new Map();
    this.startedAt = this.surroundings.now();
    const messages = this.jobs.filter(({ kind }) => kind === 'signal' || kind === 'update');
    this.jobs.splice(0, this.jobs.length, { kind: 'start', input }, ...messages);
  }

  /** The task of an activity queue that waits for a worker. */
  get queued(): ActivityTask | undefined {
    return [...(this.execution?.activities.values() ?? [])].find(
      ({ isLocal, number }) => !isLocal && !this.isResolved(number),
    );
  }

  reverseUpdates(): void {
    const isUpdate = ({ kind }: Job) => kind === 'update';
    const reversed = this.jobs.filter(isUpdate).toReversed();
    this.jobs.splice(
      0,
      this.jobs.length,
      ...this.jobs.filter((job) => !isUpdate(job)),
      ...reversed,
    );
  }

  get wakesAt(): number {
    return Math.min(...[...(this.execution?.timers.values() ?? [])].map(({ at }) => at));
  }

  get hasWork(): boolean {
    return !this.isEnded && (this.jobs.length > 0 || this.wakesAt <= this.surroundings.now());
  }

  get state(): unknown {
    return this.execution?.query();
  }

  /** Forgets what the worker has in memory, as an eviction from its cache does, and replays the history. */
  async replay(): Promise<Execution> {
    const { code } = this.surroundings;
    const execution = new Execution(code, `run-${this.runs}`, this.startedAt);
    for (const task of this.history) {
      execution.now = Math.max(execution.now, task.at);
      execution.historyLength = task.historyLength;
      await execution.apply(task.jobs, true);
      for (const { at, resolution } of task.locals) await execution.resolveLocal(at, resolution);
      execution.answers.length = 0;
      if (execution.lastNumber !== task.lastNumber) throw new Error('the replay is different');
    }
    this.execution = execution;
    return execution;
  }

  /** Runs one workflow task. After `lost` nothing of it is recorded, and its jobs wait for the next one. */
  async runTask(work: Work): Promise<'completed' | 'lost'> {
    const { now, isHeartbeatDue } = this.surroundings;
    const execution = this.execution ?? (await this.replay());
    let task = this.begin(execution);
    await execution.apply(task.jobs, false);
    for (let local = execution.localTask; local; local = execution.localTask) {
      const resolution = await work(local);
      if (resolution === 'lost') {
        this.execution = null;
        // The timers of the completed tasks go on.
        await this.replay();
        return 'lost';
      }
      const at = now();
      task.locals.push({ at, resolution });
      await execution.resolveLocal(at, resolution);
      if (execution.localTask && isHeartbeatDue()) {
        this.complete(execution, task);
        task = this.begin(execution);
        await execution.apply(task.jobs, false);
      }
    }
    this.complete(execution, task);
    const { end } = execution;
    if (end && 'error' in end) throw end.error;
    if (end?.continuesWith) this.start(end.continuesWith);
    else if (end) this.isEnded = true;
    return 'completed';
  }

  /** Runs the queued activity once. Its last failure, or after the last attempt its loss, goes to the workflow. */
  async runQueued(task: ActivityTask, work: Work): Promise<void> {
    const { number, name } = task;
    const attempt = (this.attempts.get(number) ?? 0) + 1;
    this.attempts.set(number, attempt);
    const outcome = await work(task);
    const failure =
      outcome === 'lost'
        ? ApplicationFailure.create({ message: 'heartbeat timeout' })
        : 'error' in outcome && outcome.error;
    const isLast = attempt >= MONEY_MOVEMENT.retry.maximumAttempts;
    if (!failure && outcome !== 'lost')
      this.jobs.push({ kind: 'resolve', number, resolution: outcome });
    else if (failure && (failure.nonRetryable === true || isLast)) {
      const [id, why] = [String(number), 'MAXIMUM_ATTEMPTS_REACHED'] as const;
      const error = new ActivityFailure('it failed', name, id, why, undefined, failure);
      this.jobs.push({ kind: 'resolve', number, resolution: { error } });
    }
  }

  private isResolved(number: number): boolean {
    return this.jobs.some((job) => job.kind === 'resolve' && job.number === number);
  }

  private begin(execution: Execution) {
    const at = this.surroundings.now();
    const due = [...execution.timers].filter((timer) => timer[1].at <= at);
    const jobs = [...this.jobs, ...due.map(([number]) => ({ kind: 'fire', number }) as const)];
    const earlier = this.history.at(-1)?.historyLength ?? 0;
    const historyLength = earlier + EVENTS_OF_TASK + 2 * jobs.length;
    execution.now = Math.max(execution.now, at);
    execution.historyLength = historyLength;
    return { at, historyLength, jobs, locals: [] as { at: number; resolution: Resolution }[] };
  }

  private complete(execution: Execution, task: Omit<Task, 'lastNumber'>): void {
    const taken = new Set(task.jobs);
    this.jobs.splice(0, this.jobs.length, ...this.jobs.filter((job) => !taken.has(job)));
    const jobs = task.jobs.filter(
      (job) => job.kind !== 'update' || !execution.rejected.has(job.id),
    );
    this.history.push({ ...task, jobs, lastNumber: execution.lastNumber });
    for (const answer of execution.answers.splice(0)) this.surroundings.answered(answer);
  }
}
