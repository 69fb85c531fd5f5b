import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signatureHeaders } from '../../activities/webhook-signature.ts';

const PLAIN_SECRET = 'a secret the merchant chose, with an é';
const BASE64_SECRET = `whsec_${Buffer.from('twenty-four bytes of key').toString('base64')}`;
const OLD_SECRET = 'the secret before';
const BODY = Buffer.from('{"eventId":"evt_1","name":"Zoë","amount":1999}');

const headersFor = (signer: string, previousSigner: string | null = null) =>
  signatureHeaders({ eventId: 'evt_1', sentAt: Date.now(), body: BODY, signer, previousSigner });

/** The library encodes a text key by character code, so a UTF-8 key is passed as bytes. */
const oracle = (secret: string) =>
  secret.startsWith('whsec_')
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret, 'utf8'), { format: 'raw' });

describe('webhook signature', () => {
  it.each([
    ['its UTF-8 bytes', PLAIN_SECRET],
    ['the decoded bytes after whsec_', BASE64_SECRET],
  ])('is accepted by the Standard Webhooks library when the key is %s [D-53]', (_, secret) => {
    const headers = headersFor(secret);
    expect(oracle(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(() => oracle(OLD_SECRET).verify(BODY, headers)).toThrow('No matching signature');
    expect(() => oracle(secret).verify(Buffer.concat([BODY, Buffer.from(' ')]), headers)).toThrow(
      'No matching signature',
    );
  });

  it('signs the body alone with HMAC-SHA512 in xpay-signature [D-53]', () => {
    const utf8 = createHmac('sha512', Buffer.from(PLAIN_SECRET, 'utf8')).update(BODY);
    expect(headersFor(PLAIN_SECRET)['xpay-signature']).toBe(utf8.digest('base64'));
    const decoded = createHmac('sha512', 'twenty-four bytes of key').update(BODY);
    expect(headersFor(BASE64_SECRET)['xpay-signature']).toBe(decoded.digest('base64'));
  });

  it('equals a known example byte for byte [D-53]', () => {
    const headers = signatureHeaders({
      eventId: 'evt_1',
      sentAt: 1_795_176_000_999,
      body: Buffer.from('{}'),
      signer: 'secret',
      previousSigner: null,
    });
    expect(headers).toEqual({
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1795176000',
      'webhook-signature': 'v1,ew4KNCJed4k+sbArDnVEb1cuY2efCewyJLOvlBlbwoE=',
      'xpay-signature':
        '1vESanNbWnVPblhDTxcL3v3/raLBf2fZu9htl2ablPgKkpeGZb9+pCODKz9POFbikBp8Ao4WyB77tDKYocAHcg==',
    });
  });

  it('has the previous secret second in webhook-signature and not in xpay-signature [D-53]', () => {
    const headers = headersFor(PLAIN_SECRET, OLD_SECRET);
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
    expect(oracle(PLAIN_SECRET).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(oracle(OLD_SECRET).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(headers['xpay-signature']).toBe(headersFor(PLAIN_SECRET)['xpay-signature']);
  });
});
