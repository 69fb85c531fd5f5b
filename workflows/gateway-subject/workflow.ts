import { proxyActivities, setHandler } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import type { GatewaySubject } from '../../domain/gateway-hint.ts';
import { GATEWAY_EVENT, siblingTaskQueue } from '../activity-calls.ts';
import { wake } from './messages.ts';

/** One run per object of a gateway, so that an older description never replaces a newer one. */
export async function gatewaySubject(subject: GatewaySubject): Promise<void> {
  let isWoken = true;
  setHandler(wake, () => void (isWoken = true), { description: 'Look at the object again.' });
  const { handleGatewaySubject } = proxyActivities<Activities>({
    ...GATEWAY_EVENT,
    taskQueue: siblingTaskQueue('charges'),
    summary: `look at ${subject.subjectId}`,
    priority: { fairnessKey: subject.merchantId },
  });
  while (isWoken) {
    isWoken = false;
    // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
    await handleGatewaySubject({ ...subject, nowAt: Date.now() });
  }
}
