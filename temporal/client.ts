import {
  ApplicationFailure,
  Client,
  Connection,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import type {
  ConnectionOptions,
  WorkflowClientInterceptor,
  WorkflowExecutionDescription,
  WorkflowStartOptions,
} from '@temporalio/client';
import proto from '@temporalio/proto';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Logger } from '../runtime/logger.ts';
import { dataConverter } from '../runtime/payload-digest.ts';
import { checkUnanswered } from '../runtime/request-scope.ts';
import { nameSubject, traced } from '../runtime/tracing.ts';

/** Time limit in ms for Temporal to accept a call, because the API must refuse within 5 s. */
export const ACCEPT_WITHIN_MS = 4_500;
/** Further time in ms if workers poll the queue: the call then waits behind other tasks. */
export const ACCEPT_QUEUED_WITHIN_MS = 12_000;
/** Time limit in ms from the start of a call to its outcome. After that, the caller gets `pending`. */
export const ANSWER_WITHIN_MS = 25_000;

/** Text of the server's refusal. */
const IN_FLIGHT_LIMIT = /concurrent in-flight updates/;

export interface TemporalSettings {
  temporalAddress: string;
  temporalNamespace: string;
}

/** API key, TLS and profiles come from Temporal's own environment variables. */
export function temporalConnectionOptions(settings: TemporalSettings) {
  const { connectionOptions } = loadClientConnectConfig();
  return { ...connectionOptions, address: settings.temporalAddress };
}

const { retryableDecider, ...backoff } = defaultGrpcRetryOptions();

type GrpcInterceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type GrpcCall = ReturnType<Parameters<GrpcInterceptor>[1]>;

/**
 * A call on a closed connection ends with CANCELLED. Without this, gRPC throws, and for a retry it throws in a timer:
 * the process dies of it, or the caller waits for ever.
 */
const CANCELLED_WHEN_CLOSED: GrpcInterceptor = (options, nextCall) => {
  let call: GrpcCall;
  try {
    call = nextCall(options);
  } catch (error) {
    call = cancelledCall(error instanceof Error ? error.message : String(error));
  }
  // gRPC's type asks for its class, but its code only for this interface.
  return call as ReturnType<GrpcInterceptor>;
};

const CANCELLED = 1;

function cancelledCall(details: string): GrpcCall {
  const ignore = () => {};
  return {
    start: (metadata, listener) => {
      listener?.onReceiveMessage?.(null);
      // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- gRPC's enum comes from a package of the SDK
      listener?.onReceiveStatus?.({ code: CANCELLED, details, metadata });
    },
    cancelWithStatus: ignore,
    getPeer: () => '',
    getAuthContext: () => null,
    sendMessage: ignore,
    sendMessageWithContext: ignore,
    startRead: ignore,
    halfClose: ignore,
  };
}

/** The SDK's retries, but not of an update of a run that has ten in flight: its caller offers it again. */
export const CLIENT_RETRIES = [
  makeGrpcRetryInterceptor({
    ...backoff,
    retryableDecider: (attempt, status) =>
      !IN_FLIGHT_LIMIT.test(status.details) && retryableDecider(attempt, status),
  }),
  CANCELLED_WHEN_CLOSED,
];

export interface TemporalClient {
  client: Client;
  /** Rejects unless Temporal finds the namespace in its database within 4.5 s. */
  reach(): Promise<void>;
  close(): Promise<void>;
}

/** Refuses to start, signal, update or terminate a workflow for a request that was answered at its deadline. */
const NOTHING_BEHIND_AN_ANSWER: WorkflowClientInterceptor = {
  start: ifUnanswered,
  startUpdate: ifUnanswered,
  startUpdateWithStart: ifUnanswered,
  signal: ifUnanswered,
  signalWithStart: ifUnanswered,
  terminate: ifUnanswered,
};

async function ifUnanswered<Input, Output>(input: Input, next: (input: Input) => Promise<Output>) {
  checkUnanswered();
  return next(input);
}

/** Traces each call that changes a workflow; the first one says what its HTTP request is about. */
const TRACED: WorkflowClientInterceptor = {
  start: (input, next) =>
    tracedCall(`start ${input.workflowType}`, input.options.workflowId, () => next(input)),
  startUpdate: (input, next) =>
    tracedCall(`update ${input.updateName}`, input.workflowExecution.workflowId, () => next(input)),
  startUpdateWithStart: (input, next) =>
    tracedCall(`update ${input.updateName}`, input.workflowStartOptions.workflowId, () =>
      next(input),
    ),
  signal: (input, next) =>
    tracedCall(`signal ${input.signalName}`, input.workflowExecution.workflowId, () => next(input)),
  signalWithStart: (input, next) =>
    tracedCall(`signal ${input.signalName}`, input.options.workflowId, () => next(input)),
};

function tracedCall<T>(name: string, workflowId: string | undefined, call: () => Promise<T>) {
  nameSubject({ workflowId });
  return traced(`temporal ${name}`, () => ({ workflowId }), call);
}

/** Returns a client that connects with its first call, so that the API can start without Temporal. */
export function createTemporalClient(settings: TemporalSettings): TemporalClient {
  const connection = Connection.lazy({
    ...temporalConnectionOptions(settings),
    interceptors: CLIENT_RETRIES,
  });
  const client = new Client({
    connection,
    namespace: settings.temporalNamespace,
    dataConverter,
    interceptors: { workflow: [NOTHING_BEHIND_AN_ANSWER, TRACED] },
  });
  const { temporalNamespace: namespace } = settings;
  return {
    client,
    reach: async () =>
      void (await accepted(client, () =>
        connection.workflowService.describeNamespace({ namespace }),
      )),
    close: () => connection.close(),
  };
}

export interface TemporalDeps {
  client: Client;
  taskQueuePrefix: string;
  logger: Logger;
}

/**
 * Makes a call that is repeated later anyway. A failure is logged with `message`; the result is then false. Never
 * throws.
 */
export async function orWarn(
  logger: Pick<Logger, 'warn'>,
  where: object,
  message: string,
  call: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    logger.warn(
      { ...where, error: error instanceof Error ? error.message : String(error) },
      message,
    );
    return false;
  }
}

/** Makes a call of Temporal, which must be accepted within 4.5 s. */
export function accepted<T>(client: Client, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, call);
}

/** Starts a workflow. Returns false if it already runs. Throws if Temporal does not accept the call within 4.5 s. */
export async function startUnlessRunning(
  client: Client,
  type: string,
  options: WorkflowStartOptions,
): Promise<boolean> {
  try {
    const start = { ...options, workflowIdConflictPolicy: 'FAIL' as const };
    await accepted(client, () => client.workflow.start(type, start));
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}

/** False also for an unknown workflow. Throws if Temporal does not answer within 4.5 s. */
export async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  return (await describeWorkflow(client, workflowId))?.status.name === 'RUNNING';
}

/** True if a workflow task or an activity of the workflow is scheduled or running. */
export function hasWorkPending({ raw }: WorkflowExecutionDescription): boolean {
  const { pendingWorkflowTask, pendingActivities } = raw;
  return Boolean(pendingWorkflowTask) || (pendingActivities ?? []).length > 0;
}

/** Returns null for an unknown workflow. Throws if Temporal does not answer within 4.5 s. */
export async function describeWorkflow(
  client: Client,
  workflowId: string,
): Promise<WorkflowExecutionDescription | null> {
  try {
    return await accepted(client, () => client.workflow.getHandle(workflowId).describe());
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** Changes the priority of the workflow's run, and of its task that waits unless an update made it. False if the server is too old: 1.29 is, 1.32 is not. */
export async function setPriority(
  client: Client,
  workflowId: string,
  priority: { priorityKey: number; fairnessKey?: string },
): Promise<boolean> {
  try {
    await accepted(client, () =>
      client.workflowService.updateWorkflowExecutionOptions({
        namespace: client.options.namespace,
        workflowExecution: { workflowId },
        workflowExecutionOptions: { priority },
        updateMask: { paths: ['priority'] },
      }),
    );
    return true;
  } catch (error) {
    if (isGrpcServiceError(error) && error.details.includes('invalid path "priority"'))
      return false;
    throw error;
  }
}

/**
 * True if a run did not take an update: ten others are in flight, or its worker received the update during a local
 * activity and left it. The update was not executed.
 */
export function isNotTaken(error: unknown): boolean {
  if (error instanceof WorkflowUpdateFailedError) {
    return error.cause instanceof ApplicationFailure && error.cause.type === 'UnprocessedUpdate';
  }
  const cause = error instanceof ServiceError ? error.cause : null;
  return isGrpcServiceError(cause) && IN_FLIGHT_LIMIT.test(cause.details);
}

const FAILED_PRECONDITION = 9;

/** True if the run's latest workflow tasks failed or timed out: Temporal refuses calls until one completes. */
export function isNotReady(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : null;
  const status: number | null = isGrpcServiceError(cause) ? cause.code : null;
  return status === FAILED_PRECONDITION;
}

/** If a worker polled a task queue within this time, the queue counts as moving, even with a long backlog. */
const POLLED_WITHIN_MS = 3_000;

/** True if a worker polled this queue for workflow tasks within the last 3 s. */
export async function isQueueMoving(client: Client, taskQueue: string): Promise<boolean> {
  const { pollers } = await accepted(client, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
  );
  const since = Date.now() - POLLED_WITHIN_MS;
  return (pollers ?? []).some(
    ({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 > since,
  );
}

/** Converts the bigints and errors in the SDK's log fields, because JSON cannot represent them. */
export function plainFields(meta: object | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(meta ?? {}).map(([key, value]: [string, unknown]) => [
      key,
      typeof value === 'bigint' ? value.toString() : value instanceof Error ? value.message : value,
    ]),
  );
}
