import type { GatewaySubject } from '../domain/gateway-hint.ts';
import {
  GATEWAY_SUBJECT_WORKFLOW,
  gatewaySubjectWorkflowId,
  wake,
} from '../workflows/gateway-subject/messages.ts';
import { WORKFLOW_QUEUE } from '../workflows/messages.ts';
import { accepted, orWarn, startUnlessRunning } from './client.ts';
import type { TemporalDeps } from './client.ts';

export type GatewaySubjects = ReturnType<typeof createGatewaySubjects>;

/** A subject is an object of a gateway that events name, such as a charge. Each has its own workflow. */
export function createGatewaySubjects({ client, taskQueuePrefix, logger }: TemporalDeps) {
  const optionsOf = (subject: GatewaySubject) => ({
    workflowId: gatewaySubjectWorkflowId(subject),
    taskQueue: `${taskQueuePrefix}${WORKFLOW_QUEUE}`,
    args: [subject] as [GatewaySubject],
    priority: { fairnessKey: subject.merchantId },
  });
  return {
    /** Signals the subject's workflow, or starts it. Never throws. */
    async wake(subject: GatewaySubject): Promise<void> {
      const options = { ...optionsOf(subject), signal: wake, signalArgs: [] as [] };
      await orWarn(logger, subject, 'workflow not started; the sweep will start it', () =>
        accepted(client, () => client.workflow.signalWithStart(GATEWAY_SUBJECT_WORKFLOW, options)),
      );
    },
    /** Starts the subject's workflow. False if it already runs. Throws if Temporal is unreachable. */
    ensureRunning: (subject: GatewaySubject): Promise<boolean> =>
      startUnlessRunning(client, GATEWAY_SUBJECT_WORKFLOW, optionsOf(subject)),
  };
}
