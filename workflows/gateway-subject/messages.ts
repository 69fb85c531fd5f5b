import { defineSignal } from '@temporalio/workflow';
import type { GatewaySubject } from '../../domain/gateway-hint.ts';

/** The registered type of the workflow; never changes. */
export const GATEWAY_SUBJECT_WORKFLOW = 'gatewaySubject';

export function gatewaySubjectWorkflowId(subject: GatewaySubject): string {
  return `gateway-subject/${subject.merchantId}/${subject.gateway}/${subject.subjectId}`;
}

/** A new event about the subject, an object of a gateway, is stored. */
export const wake = defineSignal('wake');
