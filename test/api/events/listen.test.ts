import { expect, onTestFinished } from 'vitest';
import { createClient } from '../../../client/index.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { startWebhookReceiver } from '../../../tools/scripts/client/webhook-receiver.ts';
import { listenToFeed } from '../../../tools/scripts/listen/run.ts';
import type { ListenOptions } from '../../../tools/scripts/listen/run.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { emit, OCCURRED_AT } from '../../support/fixtures/feed.ts';

const SECRET = 'whsec_dGhlIHRlc3Qgc2hvcCBzaWducyB3aXRoIHRoaXM=';
const EXPIRED_CURSOR = Buffer.from('1 999').toString('base64url');

/** A merchant with an empty feed, and a function that listens to it until it has printed `lines` lines. */
async function open(api: ApiEnvironment) {
  const { db, pepper } = api;
  const merchant = await createMerchantWithCredential(db, { name: 'Shop', mode: 'test', pepper });
  const { merchantId, keyId, secret } = merchant;
  const saved: string[] = [];
  const listen = async (lines: number, changes: Partial<ListenOptions> = {}) => {
    const printed: string[] = [];
    const stop = new AbortController();
    const code = await listenToFeed({
      client: createClient({ apiUrl: api.url, keyId, secret }),
      secret: SECRET,
      after: undefined,
      sinceAt: 0,
      to: undefined,
      signal: stop.signal,
      print: (line) => {
        printed.push(line.replace(/evt_\w+/, 'evt_…').replace(/\d+ ms/, '… ms'));
      },
      save: ({ after }) => {
        saved.push(after);
        if (printed.length >= lines) stop.abort();
      },
      ...changes,
    });
    return { code, printed };
  };
  return { listen, saved, emitOne: () => emit(db, { merchantId, streamId: 'sub_a' }) };
}

const line = (number: number, rest: string): string =>
  `2027-01-31 12:00:00  subscription.cycle_charged                                                #${number}     evt_…  verified${rest}`;

test('listen forwards each event with both signatures, prints the answers, and goes on behind its saved cursor [D-56, D-53]', async ({
  api,
}) => {
  const { listen, saved, emitOne } = await open(api);
  const receiver = await startWebhookReceiver({ secrets: [SECRET] });
  onTestFinished(() => receiver.close());
  receiver.answerNext({ status: 200 }, { status: 500, body: 'No \u001b[31mroom' });
  await emitOne();
  await emitOne();
  expect(await listen(2, { to: receiver.url })).toEqual({
    code: 0,
    printed: [line(1, '  → 200 in … ms'), line(2, String.raw`  → 500 in … ms: No \u001b[31mroom`)],
  });
  await emitOne();
  const after = saved.at(-1);
  expect((await listen(1, { after, to: receiver.url })).printed).toEqual([
    line(3, '  → 200 in … ms'),
  ]);
  expect(receiver.received.map(({ event }) => event.sequence)).toEqual([1, 2, 3]);
  for (const {
    isStandardSignatureValid,
    isXpaySignatureValid,
    headers,
    event,
  } of receiver.received) {
    expect([isStandardSignatureValid, isXpaySignatureValid]).toEqual([true, true]);
    expect(headers['webhook-id']).toBe(event.eventId);
  }
});

test('listen says that a program does not answer, and passes over events before its instant [D-56]', async ({
  api,
}) => {
  const { listen, emitOne } = await open(api);
  await emitOne();
  const receiver = await startWebhookReceiver({ secrets: [SECRET] });
  onTestFinished(() => receiver.close());
  receiver.answerNext('close');
  const { printed } = await listen(1, { to: receiver.url });
  expect(printed).toEqual([line(1, '  → no answer (UND_ERR_SOCKET)')]);
  expect(await listen(0, { sinceAt: OCCURRED_AT + 1 })).toEqual({ code: 0, printed: [] });
});

test('listen ends with advice when its cursor has expired [D-56]', async ({ api }) => {
  const { listen, saved } = await open(api);
  const { code, printed } = await listen(1, { after: EXPIRED_CURSOR });
  expect(code).toBe(1);
  expect(printed[0]).toMatch(/^GET \/events: 410 cursor_expired: after: /);
  expect(printed[1]).toContain('npm run listen -- --since oldest');
  expect(saved).toEqual([]);
});
