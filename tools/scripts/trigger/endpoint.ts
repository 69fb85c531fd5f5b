import { createServer } from 'node:http';
import { eq } from 'drizzle-orm';
import { createDb } from '../../../db/client.ts';
import { webhookConfigs } from '../../../db/schema/webhooks.ts';
import { listen } from '../client/listen.ts';
import type { EventType, Scene } from './scene.ts';

const WITHIN_MS = 60_000;
const HOUR_MS = 3_600_000;
const SIGNER = 'whsec_c2VjcmV0IG9mIGFuIGVuZHBvaW50IHRoYXQgZmFpbHM=';

/** Creates an endpoint that answers each event with `status`, until the event of this type has happened. */
async function failEndpoint(
  { client }: Scene,
  { type, status }: { type: EventType; status: number },
  begin: (configId: string) => Promise<unknown>,
): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status).end();
  });
  const { url, close } = await listen(server);
  const subscribedEventTypes = ['intent.created' as const];
  const body = { endpoint: url, eventSigner: SIGNER, subscribedEventTypes };
  const { webhookConfigId } = await client.createWebhook({ body });
  try {
    const { metadata } = await client.getEvents({ query: { after: 'now' } });
    await begin(webhookConfigId);
    const query = { after: metadata.after, types: [type] };
    const signal = AbortSignal.timeout(WITHIN_MS);
    for await (const page of client.feed(query, { signal })) if (page.events.length > 0) return;
  } finally {
    await client.deleteWebhook({ path: { webhookConfigId } });
    await close();
  }
}

/** An answer of 410 deactivates at once. */
export const deactivate = (scene: Scene, cause: (scene: Scene) => Promise<unknown>) =>
  failEndpoint(scene, { type: 'webhook.deactivated', status: 410 }, () => cause(scene));

/** The first failure is moved 61 hours back in the database of `npm start`, because no clock moves real time. */
export async function fail(scene: Scene, cause: (scene: Scene) => Promise<unknown>): Promise<void> {
  const { demo } = scene;
  if (demo === undefined)
    throw new Error('An endpoint must fail for 60 hours. Try it with npm start.');
  await failEndpoint(scene, { type: 'webhook.failing', status: 500 }, async (configId) => {
    const database = createDb({
      url: demo.databaseUrl,
      poolSize: 1,
      applicationName: 'trigger',
    });
    const failingSince = Date.now() - 61 * HOUR_MS;
    const isConfig = eq(webhookConfigs.id, configId);
    await database.db.update(webhookConfigs).set({ failingSince }).where(isConfig);
    await database.close();
    await cause(scene);
  });
}
