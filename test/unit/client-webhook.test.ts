import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { signatureHeaders } from '../../activities/webhooks/sender.ts';
import { verifyWebhook, WebhookVerificationError } from '../../client/index.ts';

const SENT_AT = Date.UTC(2027, 0, 31, 12);
const BASE64_SECRET = `whsec_${Buffer.from('twenty-four bytes of key').toString('base64')}`;
const TEXT_SECRET = 'a secret the merchant chose, with an é';
const TEXT = '{"eventId":"evt_1","eventType":"intent.success","note":"Zoë"}';
const BODY = Buffer.from(TEXT);

const signed = (...signers: [string, ...string[]]): Record<string, string> =>
  signatureHeaders({ eventId: 'evt_1', sentAt: SENT_AT, body: BODY, signers });

/** Sets the machine's time. */
function nowIs(at: number): void {
  vi.useFakeTimers({ now: at, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

describe('the client’s verifyWebhook', () => {
  it.each([
    ['a whsec_ secret', BASE64_SECRET],
    ['a secret of text', TEXT_SECRET],
    ['two secrets during a change', ['the new secret', TEXT_SECRET, BASE64_SECRET]],
  ])('returns the event of a genuine body, for %s [D-53]', (_, secret) => {
    nowIs(SENT_AT + 300_000);
    const headers = signed(typeof secret === 'string' ? secret : BASE64_SECRET);
    const event = { eventId: 'evt_1', eventType: 'intent.success', note: 'Zoë' };
    expect(verifyWebhook({ body: BODY, headers, secret })).toEqual(event);
    expect(verifyWebhook({ body: TEXT, headers: new Headers(headers), secret })).toEqual(event);
  });

  it('accepts the signature of either secret that the service lists [D-53]', () => {
    nowIs(SENT_AT);
    const headers = signed('the new secret', TEXT_SECRET);
    for (const secret of ['the new secret', TEXT_SECRET]) {
      expect(verifyWebhook({ body: BODY, headers, secret })).toMatchObject({ eventId: 'evt_1' });
    }
  });

  const genuine = { body: BODY, headers: signed(BASE64_SECRET), secret: BASE64_SECRET };
  const unsigned = 'no signature is of this body and this secret';
  it.each([
    ['another secret', { secret: TEXT_SECRET }, unsigned],
    ['no secret', { secret: [] }, unsigned],
    ['a changed body', { body: TEXT.replace('evt_1', 'evt_2') }, unsigned],
    ['another id', { headers: { ...genuine.headers, 'webhook-id': 'evt_2' } }, unsigned],
    ['no headers', { headers: {} }, unsigned],
    ['a cut signature', { headers: { ...genuine.headers, 'webhook-signature': 'v1,' } }, unsigned],
    ['a lower tolerance', { toleranceSeconds: 299 }, 'the signature is too old'],
  ])('refuses %s [D-53]', (_, change, message) => {
    nowIs(SENT_AT + 300_000);
    const verify = () => verifyWebhook({ ...genuine, ...change });
    expect(verify).toThrow(WebhookVerificationError);
    expect(verify).toThrow(message);
  });

  it.each([SENT_AT + 300_001, SENT_AT - 300_001])('refuses the time %i [D-53]', (at) => {
    nowIs(at);
    expect(() => verifyWebhook(genuine)).toThrow('the signature is too old');
  });

  it('refuses an empty secret [D-53]', () => {
    expect(() => verifyWebhook({ ...genuine, secret: 'whsec_' })).toThrow('the secret is empty');
    expect(() => verifyWebhook({ ...genuine, secret: '' })).toThrow('the secret is empty');
  });
});
