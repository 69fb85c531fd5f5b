import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect } from 'vitest';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { traceIdOf } from '../../runtime/tracing.ts';
import { listen } from '../../tools/scripts/client/listen.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { apiProcesses } from '../support/api-process.ts';
import { onDevServer } from '../support/environment.ts';
import { startOurProcess } from '../support/our-process.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { openWorkerScenario } from '../support/worker-scenario.ts';

const SIGNER = 'whsec_dGhlIHRyYWNpbmcgdGVzdCBzaWducyB3aXRoIHRoaXM=';

const test = onDevServer.extend('workerless', async ({ server }, { onCleanup }) => {
  const scenario = await openWorkerScenario(server, { isWhole: true });
  onCleanup(() => scenario.close());
  return scenario.env;
});

interface Span {
  service: string;
  traceId: string;
  name: string;
  attributes: Record<string, unknown>;
}

interface Sent {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: { traceId: string; name: string; attributes: Attribute[] }[] }[];
  }[];
}
interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number };
}

const read = (attributes: readonly Attribute[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]),
  );

/** A collector of OpenTelemetry: it receives spans by OTLP over HTTP, as JSON. */
async function startCollector() {
  const spans: Span[] = [];
  const server = createServer((request, response) => {
    void json(request).then((sent) => {
      for (const { resource, scopeSpans } of (sent as Sent).resourceSpans) {
        const service = String(read(resource.attributes)['service.name']);
        for (const span of scopeSpans.flatMap(({ spans: some }) => some)) {
          const { traceId, name } = span;
          spans.push({ service, traceId, name, attributes: read(span.attributes) });
        }
      }
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
  });
  return { ...(await listen(server)), spans };
}

test('one trace leads from a create over the workflow to the first webhook, and has no personal data', async ({
  workerless: env,
  onTestFinished,
}) => {
  const collector = await startCollector();
  onTestFinished(() => collector.close());
  const receiver = await startWebhookReceiver({ secrets: [SIGNER] });
  onTestFinished(() => receiver.close());
  await env.subscribe(receiver.url, SIGNER);
  const variables = { ...env.variables, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const apis = await apiProcesses({ ...env, variables });
  const api = await apis.start();
  const worker = await startOurProcess('worker.ts', variables);
  const customerDetails = { name: 'Canary Kowalski', email: 'canary@example.com' };

  const created = await fetch(`${api.url}/subscription/create`, {
    method: 'POST',
    headers: { authorization: apis.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ ...MONTHLY, customerDetails }),
  });
  const { subscriptionId } = (await created.json()) as { subscriptionId: string };
  const types = (await receiver.waitFor(2)).map(({ event }) => event.eventType);
  expect(types.toSorted()).toEqual(['intent.created', 'subscription.created']);
  await payCheckout(env, { merchantId: env.merchantId, subscriptionId });
  // A process sends the last spans when it stops.
  await worker.stop();
  await api.stop();

  const workflowId = `subscription/${subscriptionId}`;
  const mine = collector.spans.filter(({ traceId }) => traceId === traceIdOf(workflowId));
  const names = mine.map(({ service, name }) => `${service}: ${name}`);
  expect(names).toEqual(
    expect.arrayContaining([
      'perennial-api: POST /subscription/create',
      'perennial-api: temporal start subscription',
      'perennial-worker: webhook subscription.created',
    ]),
  );
  expect(names.some((name) => name.startsWith('perennial-worker: activity '))).toBe(true);
  for (const { attributes } of mine) {
    expect(attributes).toMatchObject({ 'perennial.subscription_id': subscriptionId });
  }
  const ofCreate = mine.find(({ name }) => name === 'POST /subscription/create');
  expect(ofCreate?.attributes).toMatchObject({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'perennial.workflow_id': workflowId,
    'perennial.request_id': created.headers.get('request-id'),
  });
  const ofCharge = mine.find(({ name }) => name === 'activity chargeAttempt');
  expect(ofCharge?.attributes).toMatchObject({
    'perennial.intent_id': intentIdOfCycle(subscriptionId, 1),
  });
  expect(JSON.stringify(collector.spans)).not.toMatch(/canary/i);
});
