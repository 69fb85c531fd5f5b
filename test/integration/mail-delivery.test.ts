import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { and, asc, eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { appendEvents } from '../../db/repositories/webhooks/outbox.ts';
import { webhookAttempts, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { MAIL_ENDPOINT, MAIL_EVENT_TYPES } from '../../domain/mails.ts';
import { gate } from '../support/gate.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer } from '../support/mail-server.ts';
import { HOUR_MS, MINUTE_MS, onWebhookQueues, streamIds } from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';

const it = onWebhookQueues.extend(
  'server',
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  async ({}, { onCleanup }) => {
    const server = await startMailServer();
    onCleanup(() => server.close());
    return server;
  },
);

/** Commits a payer's cancellation to a stream. Its e-mail goes to `<stream>@example.com`. */
const declare = (env: WebhookEnvironment, streamId: string, more: object = {}) =>
  env.db.transaction((tx) =>
    appendEvents(tx, { merchantId: env.merchantId, streamId }, [
      {
        type: 'cancellation.received',
        occurredAt: Date.now(),
        body: (envelope) => ({
          ...envelope,
          eventType: 'cancellation.received',
          eventTime: Date.UTC(2026, 10, 30),
          declarationId: `dcl_${streamId}`,
          kind: 'cancellation',
          name: 'Ada Example',
          email: `${streamId}@example.com`,
          reference: 'T-1',
          reason: null,
          endDate: null,
          language: 'en',
          declaredAt: Date.UTC(2026, 10, 30, 9, 30),
          outcome: 'told',
          ...more,
        }),
      },
    ]),
  );

async function mailProcess(env: WebhookEnvironment, settings: MailServer['settings']) {
  const configId = await env.addConfig({
    url: MAIL_ENDPOINT,
    eventTypes: [...MAIL_EVENT_TYPES],
  });
  return { configId, process: env.startProcess(env.db, undefined, settings) };
}

const inOrder = (texts: readonly string[]) =>
  texts.toSorted((one, other) => one.localeCompare(other));

const recipients = ({ received }: MailServer) =>
  inOrder(received.map(({ to }) => to?.[0]?.address ?? ''));

const deliveries = ({ db, merchantId }: WebhookEnvironment, configId: string) =>
  db
    .select()
    .from(webhookDeliveries)
    .where(
      and(eq(webhookDeliveries.merchantId, merchantId), eq(webhookDeliveries.configId, configId)),
    )
    .orderBy(asc(webhookDeliveries.streamId));

describe('an e-mail to a payer', () => {
  it('is one row with the server’s answer, and has the words of the declaration as text and as HTML', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    await declare(env, 'ada');
    await env.deliver({ process });
    const [delivery, ...others] = await deliveries(env, configId);
    expect(others).toEqual([]);
    expect(delivery).toMatchObject({
      state: 'DELIVERED',
      attempts: 1,
      lastHttpStatus: 250,
      lastError: null,
    });
    expect(delivery?.answer).toContain('queued as 1');
    const [mail] = server.received;
    expect(mail).toMatchObject({
      messageId: `<${delivery?.eventId}@example.com>`,
      subject: '[TEST] Your cancellation was received · Test shop',
      from: { name: 'Test shop', address: 'billing@example.com' },
      to: [{ name: '', address: 'ada@example.com' }],
    });
    expect(mail?.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-generated');
    expect(mail?.text?.trim().replaceAll('\u00A0', ' ')).toBe(
      [
        'Your cancellation was received',
        '',
        'Test shop received this declaration. Keep this e-mail as your confirmation.',
        '',
        'Declaration: I cancel this contract.',
        'Number of the contract: T-1',
        'Name: Ada Example',
        'E-mail address: ada@example.com',
        'End of the contract: The earliest possible date',
        'Received on: 30 November 2026 at 09:30',
        'Number of this confirmation: dcl_ada',
        '',
        'Dates are in UTC.',
        'You receive this e-mail because you paid Test shop or subscribed with them.',
        'Test mode: no money moves.',
      ].join('\n'),
    );
    expect(mail?.html).toContain('<td style="padding:6px 0;vertical-align:top">T-1</td>');
    await env.deliver({ process, laterMs: HOUR_MS });
    expect(server.received).toHaveLength(1);
  });

  it('shows what a payer typed as text, and takes no header from it', async ({ env, server }) => {
    const { process } = await mailProcess(env, server.settings);
    const name = 'Ada <b>\r\nBcc: eve@example.com';
    await declare(env, 'ada', { name, reference: '<script>', reason: 'It is & was "late"' });
    await env.deliver({ process });
    const [mail] = server.received;
    expect(mail?.bcc).toBeUndefined();
    expect(recipients(server)).toEqual(['ada@example.com']);
    expect(mail?.html).toContain('&lt;script>');
    expect(mail?.html).not.toContain('<script>');
    expect(mail?.text).toContain('Good cause: It is & was "late"');
  });

  it('is not sent for a declaration that matches no contract', async ({ env, server }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    await declare(env, 'eve', { outcome: 'unmatched' });
    await env.deliver({ process });
    expect(server.received).toEqual([]);
    expect(await deliveries(env, configId)).toMatchObject([
      { state: 'DELIVERED', lastHttpStatus: 204, answer: 'no contract has this address' },
    ]);
  });

  it('to an address that the server refuses fails once, and delays no other e-mail', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    for (const id of streamIds(7))
      server.refuse(`${id}@example.com`, `550 5.1.1 <${id}@example.com>: no such mailbox`);
    for (const id of [...streamIds(7), 'ada']) await declare(env, id);
    await env.deliver({ process });
    await env.deliver({ process, laterMs: 48 * HOUR_MS });
    expect(recipients(server)).toEqual(['ada@example.com']);
    const settled = await deliveries(env, configId);
    expect(settled.map(({ state, attempts }) => `${state} ${attempts}`)).toEqual([
      'DELIVERED 1',
      ...streamIds(7).map(() => 'FAILED 1'),
    ]);
    const attempts = await env.db.select().from(webhookAttempts);
    expect(attempts).toHaveLength(7);
    for (const { httpStatus, error, answer, nextAttemptAt } of attempts) {
      expect([httpStatus, error, nextAttemptAt]).toEqual([550, 'refused_recipient', null]);
      expect(answer).toBe('550 5.1.1 <…>: no such mailbox');
    }
    expect(await env.config(configId)).toMatchObject({ isActive: true, failingSince: null });
  });

  it('in test mode goes to addresses of the sender’s own domain only', async ({ env, server }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    await declare(env, 'ada', { email: 'ada@elsewhere.example' });
    await env.deliver({ process });
    expect(server.received).toEqual([]);
    expect(await deliveries(env, configId)).toMatchObject([
      { state: 'DELIVERED', answer: 'in test mode only addresses at example.com get e-mails' },
    ]);
  });

  it('that a relay refuses because of us is repeated, and counts as a failure of the server', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    server.refuse('ada@example.com', '554 5.7.1 relay access denied');
    await declare(env, 'ada');
    await env.deliver({ process });
    expect(await deliveries(env, configId)).toMatchObject([
      { state: 'PENDING', attempts: 1, lastHttpStatus: 554, lastError: null },
    ]);
    expect((await env.config(configId)).failingSince).not.toBeNull();
  });

  it('to an address that the server refuses for now is repeated with the same Message-ID', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    server.refuse('ada@example.com', '450 4.2.1 try again later');
    await declare(env, 'ada');
    await env.deliver({ process });
    expect(await deliveries(env, configId)).toMatchObject([
      { state: 'PENDING', attempts: 1, lastHttpStatus: 450, lastError: 'refused_recipient' },
    ]);
    expect(await env.config(configId)).toMatchObject({ failingSince: null });
    server.accept('ada@example.com');
    await env.deliver({ process, laterMs: MINUTE_MS });
    const [delivery] = await deliveries(env, configId);
    expect(delivery).toMatchObject({ state: 'DELIVERED', attempts: 2 });
    expect(server.received.map(({ messageId }) => messageId)).toEqual([
      `<${delivery?.eventId}@example.com>`,
    ]);
  });
});

describe('a mail server', () => {
  it('that is down for an hour gets each of 1,000 e-mails once, and delays no webhook', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    const receiver = await env.startReceiver();
    await env.addConfig({ url: receiver.url, eventTypes: ['cancellation.received'] });
    await server.close();
    const ids = streamIds(1_000);
    for (const id of ids) await declare(env, id);
    for (const laterMs of [0, 5 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS]) {
      await env.deliver({ process, laterMs });
    }
    expect(receiver.received).toHaveLength(1_000);
    expect(receiver.received.every(({ answered }) => answered === 200)).toBe(true);
    expect(await env.config(configId)).toMatchObject({ isActive: true });

    const again = await startMailServer({ port: server.port });
    for (let round = 1; round <= 8; round += 1) {
      await env.deliver({ process, laterMs: HOUR_MS + round * 3 * HOUR_MS });
    }
    expect(recipients(again)).toEqual(inOrder(ids.map((id) => `${id}@example.com`)));
    const states = await deliveries(env, configId);
    expect(new Set(states.map(({ state }) => state))).toEqual(new Set(['DELIVERED']));
    expect(receiver.received).toHaveLength(1_000);
    await again.close();
  });

  it('that does not answer in time gets no e-mail later that still waited for a connection', async ({
    env,
    server,
  }) => {
    const { configId, process } = await mailProcess(env, server.settings);
    const held = gate();
    server.answerAfter(held.isOpen);
    for (const id of streamIds(8)) await declare(env, id);
    await env.deliver({ process });
    const states = async () =>
      (await deliveries(env, configId)).map(({ state, lastError }) => `${state} ${lastError}`);
    expect(await states()).toEqual(streamIds(8).map(() => 'PENDING timeout'));
    // With four connections the server has taken four of them, or more if the first ones ended a moment before the rest.
    const begun = recipients(server);
    expect(begun.length).toBeGreaterThanOrEqual(4);

    held.open();
    await env.deliver({ process, laterMs: HOUR_MS });
    for (let round = 1; round <= 4; round += 1) {
      await env.deliver({ process, laterMs: (1 + 3 * round) * HOUR_MS });
    }
    expect(await states()).toEqual(streamIds(8).map(() => 'DELIVERED null'));
    const all = streamIds(8).map((id) => `${id}@example.com`);
    expect(recipients(server)).toEqual(inOrder([...all, ...begun]));
  });

  it('that accepts the connection and says nothing, or offers no TLS for a password, is a failure that is repeated', async ({
    env,
    server,
  }) => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const { configId, process } = await mailProcess(env, {
      ...server.settings,
      smtpUrl: `smtp://127.0.0.1:${port}`,
    });
    await declare(env, 'ada');
    await env.deliver({ process });
    expect(await deliveries(env, configId)).toMatchObject([
      { state: 'PENDING', attempts: 1, lastError: 'timeout' },
    ]);
    silent.close();
    const secret = env.startProcess(env.db, undefined, {
      ...server.settings,
      smtpUrl: `smtp://user:secret@127.0.0.1:${server.port}`,
    });
    await env.deliver({ process: secret, laterMs: MINUTE_MS });
    expect(await deliveries(env, configId)).toMatchObject([{ state: 'PENDING', attempts: 2 }]);
    expect(server.received).toEqual([]);
    const [, second] = await env.db.select().from(webhookAttempts).orderBy(asc(webhookAttempts.at));
    // The server does not know STARTTLS.
    expect(second).toMatchObject({ httpStatus: 500, answer: null });
  });
});
