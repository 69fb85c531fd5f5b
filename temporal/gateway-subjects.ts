import type { Client } from '@temporalio/client';
import type { GatewaySubject } from '../domain/gateway-hint.ts';
import type { Logger } from '../runtime/logger.ts';
import {
  GATEWAY_SUBJECT_WORKFLOW,
  gatewaySubjectWorkflowId,
  wake,
} from '../workflows/gateway-subject/messages.ts';
import { accepted, startUnlessRunning } from './client.ts';

/**
 * Starts the workflows that handle events of gateways. A subject is an object of a gateway that events name, such as a
 * charge. Each subject has its own workflow.
 */
export interface GatewaySubjects {
  /** Signals the subject's workflow, or starts it. Never throws: the maintenance sweep starts a missing workflow. */
  wake(subject: GatewaySubject): Promise<void>;
  /** Starts the subject's workflow. Returns false if it already runs. Throws if Temporal is unreachable. */
  ensureRunning(subject: GatewaySubject): Promise<boolean>;
}

export interface GatewaySubjectsDeps {
  client: Client;
  /** Workflows run on `<prefix>checkout`, because a payer may wait for the result of an entered card. */
  taskQueuePrefix: string;
  logger: Pick<Logger, 'warn'>;
}

export function createGatewaySubjects(deps: GatewaySubjectsDeps): GatewaySubjects {
  const { client, taskQueuePrefix, logger } = deps;
  const optionsOf = (subject: GatewaySubject) => ({
    workflowId: gatewaySubjectWorkflowId(subject),
    taskQueue: `${taskQueuePrefix}checkout`,
    args: [subject] as [GatewaySubject],
    priority: { fairnessKey: subject.merchantId },
  });
  return {
    async wake(subject) {
      const options = { ...optionsOf(subject), signal: wake, signalArgs: [] as [] };
      try {
        await accepted(client, () =>
          client.workflow.signalWithStart(GATEWAY_SUBJECT_WORKFLOW, options),
        );
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        logger.warn({ ...subject, error: reason }, 'workflow not started; the sweep will start it');
      }
    },
    ensureRunning: (subject) =>
      startUnlessRunning(client, GATEWAY_SUBJECT_WORKFLOW, optionsOf(subject)),
  };
}
