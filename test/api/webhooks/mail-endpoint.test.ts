import { expect } from 'vitest';
import { endpointProblem } from '../../../runtime/webhook-address.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';

const MAILS = {
  eventSigner: 'signs nothing',
  endpoint: 'mailto:payer',
  subscribedEventTypes: ['intent.success', 'subscription.renewal_upcoming'],
};

const create = (api: ApiEnvironment, body: object = {}) =>
  api.call('POST', '/webhook', { body: { ...MAILS, ...body } });

test('a merchant turns e-mails on once, by a configuration that is listed, changed and deleted like another', async ({
  api,
}) => {
  const created = await create(api);
  expect(created.status).toBe(200);
  const { webhookConfigId } = created.json as { webhookConfigId: string };
  const listed = async () => {
    const { data } = (await api.call('GET', '/webhook')).json as { data: { webHookUrl: string }[] };
    return data.filter(({ webHookUrl }) => webHookUrl === 'mailto:payer');
  };
  expect(await listed()).toEqual([
    {
      webhookConfigId,
      webHookUrl: 'mailto:payer',
      eventSigner: '<SIGNING_SECRET>',
      subscribedEventTypes: MAILS.subscribedEventTypes,
      isActive: true,
      breaker: 'CLOSED',
      state: 'HEALTHY',
      missedEvents: 0,
    },
  ]);
  const second = await create(api);
  expect(second.status).toBe(400);
  expect(second.json).toMatchObject({
    errorCode: 'operation_not_allowed',
    errorDescription:
      'Payers already get e-mails by another configuration. Change that one, or delete it first.',
  });
  const path = `/webhook/${webhookConfigId}`;
  const put = (body: object) => api.call('PUT', path, { body: { ...MAILS, ...body } });
  expect((await put({ subscribedEventTypes: ['intent.failed'] })).status).toBe(204);
  const moved = await put({ endpoint: 'https://merchant.example/hook' });
  expect(moved.status).toBe(400);
  expect(moved.json).toMatchObject({ errorCode: 'operation_not_allowed' });
  expect(await listed()).toMatchObject([{ subscribedEventTypes: ['intent.failed'] }]);

  expect((await api.call('DELETE', path)).status).toBe(200);
  expect(await listed()).toEqual([]);
  expect((await create(api)).status).toBe(200);
});

test('a configuration of webhooks does not become one of e-mails', async ({ api }) => {
  const created = await create(api, { endpoint: 'https://merchant.example/hook' });
  const { webhookConfigId } = created.json as { webhookConfigId: string };
  const moved = await api.call('PUT', `/webhook/${webhookConfigId}`, { body: MAILS });
  expect(moved.status).toBe(400);
  expect(moved.json).toMatchObject({ errorCode: 'operation_not_allowed' });
});

test('an event of which no e-mail is made is refused with the list of the others', async ({
  api,
}) => {
  const answer = await create(api, { subscribedEventTypes: ['intent.created', 'intent.success'] });
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.json)).toContain(
    'no e-mail is made of intent.created, but of intent.success, intent.failed, ',
  );
});

test('without a mail server mailto:payer is refused with the missing settings; other mailto URLs are always refused', () => {
  const without = { allowLoopback: false };
  expect(endpointProblem('mailto:payer', without)).toBe(
    'needs a mail server, and this installation has none: its operator sets SMTP_URL and MAIL_FROM',
  );
  const accepting = { ...without, sendsMails: true };
  expect(endpointProblem('mailto:payer', accepting)).toBeUndefined();
  expect(endpointProblem('mailto:ada@example.com', accepting)).toBe(
    'must be an absolute https URL',
  );
});
