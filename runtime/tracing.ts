import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { ROOT_CONTEXT, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Tracer } from '@opentelemetry/api';
import type { Closer } from './shutdown.ts';

/** What a span is about. Its trace is that of the workflow: the ids below name it. */
export interface Subject {
  workflowId?: string | undefined;
  subscriptionId?: string | undefined;
  intentId?: string | undefined;
}

export interface Described extends Subject {
  attributes?: Attributes;
  /** Overrides the span's name, if it is known only at the end. */
  name?: string;
}

/** Null without tracing. */
let tracer: Tracer | null = null;
/** The trace of the next span. Set only while a span is made, synchronously. */
let nextTraceId: string | null = null;
/** The subject of the HTTP request that is being served. */
const request = new AsyncLocalStorage<{ subject: Subject }>();

/**
 * Sends spans to the collector at `endpoint`, by OTLP over HTTP. All spans of a workflow have one trace, whose id is derived
 * from the workflow's, because no header passes a sleeping workflow.
 */
export async function startTracing(
  endpoint: string | undefined,
  service: string,
): Promise<Closer[]> {
  if (endpoint === undefined) return [];
  const [sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ]);
  const random = new sdk.RandomIdGenerator();
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` });
  const started = new sdk.NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': `perennial-${service}` }),
    idGenerator: {
      generateTraceId: () => nextTraceId ?? random.generateTraceId(),
      generateSpanId: () => random.generateSpanId(),
    },
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  tracer = started.getTracer('perennial');
  return [{ name: 'traces', timeoutMs: 5_000, close: () => started.shutdown() }];
}

/** Makes a span of `work`, which `describe` describes when it has ended. Without tracing only does the work. */
export async function traced<T>(
  name: string,
  describe: (result: T | undefined) => Described,
  work: () => Promise<T>,
): Promise<T> {
  if (tracer === null) return work();
  const startTime = Date.now();
  let result: T | undefined;
  let failure: unknown;
  try {
    return (result = await work());
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    const { name: known = name, attributes, ...subject } = describe(result);
    record(known, startTime, subject, attributes ?? {}, failure);
  }
}

export type RequestTracer = (
  describe: () => Described,
  work: () => Promise<unknown>,
) => Promise<unknown>;

/** As {@link traced}, for an HTTP request without a subject of its own: its subject is what {@link nameSubject} names first. */
export const tracedRequest: RequestTracer = (describe, work) => {
  if (tracer === null) return work();
  const scope: { subject: Subject } = { subject: {} };
  const describeAll = (): Described => {
    const own = describe();
    return workflowIdOf(own) === undefined ? { ...scope.subject, ...own } : own;
  };
  return request.run(scope, () => traced('request', describeAll, work));
};

/** Says what the request is about, if nothing else did. */
export function nameSubject(subject: Subject): void {
  const scope = request.getStore();
  if (scope && workflowIdOf(scope.subject) === undefined) scope.subject = subject;
}

function workflowIdOf({ workflowId, subscriptionId, intentId }: Subject): string | undefined {
  if (workflowId !== undefined) return workflowId;
  if (subscriptionId !== undefined) return `subscription/${subscriptionId}`;
  return intentId === undefined ? undefined : `payment/${intentId}`;
}

function record(
  name: string,
  startTime: number,
  subject: Subject,
  attributes: Attributes,
  failure: unknown,
): void {
  const workflowId = workflowIdOf(subject);
  nextTraceId = workflowId === undefined ? null : traceIdOf(workflowId);
  const span = tracer?.startSpan(name, { startTime, root: true }, ROOT_CONTEXT);
  nextTraceId = null;
  span?.setAttributes({ ...attributes, ...idsOf(subject, workflowId) });
  // The message of an error may hold personal data.
  if (failure !== undefined) {
    span?.setStatus({ code: SpanStatusCode.ERROR, message: nameOf(failure) });
  }
  span?.end();
}

export function traceIdOf(workflowId: string): string {
  return createHash('sha256').update(workflowId).digest('hex').slice(0, 32);
}

function idsOf(subject: Subject, workflowId = ''): Attributes {
  const [, kind, id] = /^(subscription|payment)\/(.*)/.exec(workflowId) ?? [];
  const { subscriptionId = kind === 'subscription' ? id : undefined } = subject;
  const { intentId = kind === 'payment' ? id : undefined } = subject;
  return {
    ...(workflowId !== '' && { 'perennial.workflow_id': workflowId }),
    ...(subscriptionId !== undefined && { 'perennial.subscription_id': subscriptionId }),
    ...(intentId !== undefined && { 'perennial.intent_id': intentId }),
  };
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
