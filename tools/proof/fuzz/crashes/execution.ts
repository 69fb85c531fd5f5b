import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import * as sdk from '@temporalio/workflow';
import { TypedSearchAttributes } from '@temporalio/common';
import { build } from 'esbuild';
import type { SubscriptionInput } from '../../../../workflows/subscription/messages.ts';

/** A message or an event of a workflow task. `fire` and `resolve` name a timer or an activity by its number. */
export type Job =
  | { kind: 'start'; input: SubscriptionInput }
  | { kind: 'signal'; name: string; argument: unknown }
  | { kind: 'update'; id: string; name: string; argument: unknown }
  | { kind: 'fire'; number: number }
  | { kind: 'resolve'; number: number; resolution: Resolution };

export type Resolution = { value: unknown } | { error: Error };
export type UpdateResponse = { id: string } & Resolution;

export interface ActivityTask {
  readonly number: number;
  readonly name: string;
  readonly isLocal: boolean;
  readonly input: unknown;
  readonly resolve: (resolution: Resolution) => void;
}

/** A completed workflow task, from which a replay continues. `locals`: the results of its local activities. */
export interface Task {
  readonly at: number;
  readonly historyLength: number;
  readonly jobs: readonly Job[];
  readonly locals: readonly { readonly at: number; readonly resolution: Resolution }[];
  /** The last number of a timer or activity. A replay must reach the same. */
  readonly lastNumber: number;
}

type Handler = (argument: unknown) => unknown;
type Workflow = (input: SubscriptionInput) => Promise<unknown>;
const ROUNDS_MAX = 10_000;
const requireReal = createRequire(import.meta.url);

/** Temporal sends every value as JSON. */
const copy = <T>(value: T): T =>
  value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);

export type WorkflowCode = Script;

export async function bundleWorkflow(): Promise<WorkflowCode> {
  const file = 'workflows/subscription/workflow.ts';
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    format: 'cjs',
    target: 'node20',
    external: ['@temporalio/*'],
  });
  return new Script(`(function (require, module, Date) {${outputFiles[0]?.text}\n})`, {
    filename: file,
  });
}

/** The memory of a worker about one run: the real workflow code, with a replacement of Temporal's API. */
export class Execution {
  now = 0;
  historyLength = 0;
  lastNumber = 0;
  end: { continuesWith: SubscriptionInput | null } | { error: unknown } | null = null;
  readonly timers = new Map<number, { at: number; fire: () => void }>();
  readonly activities = new Map<number, ActivityTask>();
  readonly answers: UpdateResponse[] = [];
  readonly rejected = new Set<string>();
  private openUpdates = 0;
  private readonly conditions = new Set<{ test: () => boolean; open: () => void }>();
  private readonly handlers = new Map<string, { handler: Handler; validator?: Handler }>();
  private readonly workflow: Workflow;
  private readonly runId: string;
  private readonly startedAt: number;

  constructor(code: WorkflowCode, runId: string, startedAt: number) {
    this.runId = runId;
    this.startedAt = startedAt;
    const nowOf = () => this.now;
    const WorkflowDate = class extends Date {
      static override now = nowOf;
    };
    const module = { exports: {} as { subscription: Workflow } };
    const run = code.runInThisContext() as (...all: unknown[]) => void;
    const api = this.api();
    const load = (name: string): unknown =>
      name === '@temporalio/workflow' ? api : requireReal(name);
    run(load, module, WorkflowDate);
    this.workflow = module.exports.subscription;
  }

  /** Applies messages before events, as the SDK does. A replay accepts updates without their validators. */
  async apply(jobs: readonly Job[], isReplay: boolean): Promise<void> {
    const isMessage = ({ kind }: Job) => kind === 'signal' || kind === 'update';
    const groups = [jobs.filter(({ kind }) => kind === 'start'), jobs.filter(isMessage)];
    for (const job of groups.flat()) this.take(job, isReplay);
    await this.comeToRest();
    for (const job of jobs) if (job.kind !== 'start' && !isMessage(job)) this.take(job, isReplay);
    await this.comeToRest();
  }

  async resolveLocal(at: number, resolution: Resolution): Promise<void> {
    this.now = Math.max(this.now, at);
    this.localTask?.resolve(resolution);
    await this.comeToRest();
  }

  get localTask(): ActivityTask | undefined {
    return [...this.activities.values()].find(({ isLocal }) => isLocal);
  }

  query(): unknown {
    return this.handlers.get('state')?.handler(undefined);
  }

  private take(job: Job, isReplay: boolean): void {
    switch (job.kind) {
      case 'start':
        void this.workflow(copy(job.input)).then(
          () => (this.end = { continuesWith: null }),
          (error: unknown) => (this.end = { error }),
        );
        return;
      case 'signal':
        this.handlers.get(`signal ${job.name}`)?.handler(copy(job.argument));
        return;
      case 'update':
        this.update(job, isReplay);
        return;
      case 'fire':
        this.timers.get(job.number)?.fire();
        return;
      case 'resolve':
        this.activities.get(job.number)?.resolve(job.resolution);
    }
  }

  private update(
    { id, name, argument }: Extract<Job, { kind: 'update' }>,
    isReplay: boolean,
  ): void {
    const { handler, validator } = this.handlers.get(`update ${name}`) ?? {};
    if (!handler) throw new Error(`no handler of ${name}`);
    try {
      if (!isReplay) validator?.(copy(argument));
    } catch (error) {
      this.rejected.add(id);
      this.answers.push({ id, error: error as Error });
      return;
    }
    this.openUpdates += 1;
    const answered = (resolution: Resolution): void => {
      this.openUpdates -= 1;
      this.answers.push({ id, ...resolution });
    };
    void (async () => handler(copy(argument)))().then(
      (value) => answered({ value }),
      (error: Error) => answered({ error }),
    );
  }

  private async comeToRest(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const open = [...this.conditions].filter(({ test }) => test());
      if (open.length === 0) return;
      for (const each of open) each.open();
    }
    throw new Error('the workflow does not come to rest');
  }

  private api() {
    const proxy = (isLocal: boolean) => () =>
      new Proxy({}, { get: (_, name) => this.activity(String(name), isLocal) });
    const ignore = () => undefined;
    return {
      ...sdk,
      condition: (test: () => boolean, ms?: number) => this.condition(test, ms),
      setHandler: (
        { name, type }: { name: string; type: string },
        handler: Handler,
        options?: { validator?: Handler },
      ) => this.handlers.set(type === 'query' ? name : `${type} ${name}`, { handler, ...options }),
      allHandlersFinished: () => this.openUpdates === 0,
      proxyActivities: proxy(false),
      proxyLocalActivities: proxy(true),
      makeContinueAsNewFunc: () => (input: SubscriptionInput) => {
        this.end = { continuesWith: copy(input) };
        return new Promise(ignore);
      },
      workflowInfo: () => ({
        historyLength: this.historyLength,
        runId: this.runId,
        runStartTime: new Date(this.startedAt),
        taskQueue: 'workflows',
        typedSearchAttributes: new TypedSearchAttributes(),
      }),
      CancellationScope: {
        nonCancellable: (work: () => unknown) => work(),
        current: () => ({ cancelRequested: new Promise(ignore) }),
      },
      uuid4: () => `${this.runId}:${(this.lastNumber += 1)}`,
      currentUpdateInfo: ignore,
      upsertSearchAttributes: ignore,
      setCurrentDetails: ignore,
      log: { info: ignore, warn: ignore, error: ignore },
    };
  }

  private activity(name: string, isLocal: boolean) {
    return {
      executeWithOptions: (_options: unknown, [input]: [unknown]) =>
        new Promise((resolve, reject) => {
          const number = (this.lastNumber += 1);
          const settle = (resolution: Resolution): void => {
            this.activities.delete(number);
            if ('error' in resolution) reject(resolution.error);
            else resolve(copy(resolution.value));
          };
          this.activities.set(number, {
            number,
            name,
            isLocal,
            input: copy(input),
            resolve: settle,
          });
        }),
    };
  }

  private condition(test: () => boolean, ms?: number): Promise<boolean> {
    if (test()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const number = (this.lastNumber += 1);
      const over = (isOpen: boolean): void => {
        this.conditions.delete(waiting);
        this.timers.delete(number);
        resolve(isOpen);
      };
      const waiting = { test, open: () => over(true) };
      this.conditions.add(waiting);
      if (ms !== undefined) this.timers.set(number, { at: this.now + ms, fire: () => over(false) });
    });
  }
}
