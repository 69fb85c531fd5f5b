import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signatureHeaders } from '../../activities/webhooks/sender.ts';

const PLAIN_SECRET = 'a secret the merchant chose, with an é';
const BASE64_SECRET = `whsec_${Buffer.from('twenty-four bytes of key').toString('base64')}`;
const OLD_SECRET = 'the secret before';
const BODY = Buffer.from('{"eventId":"evt_1","name":"Zoë","amount":1999}');

/** The examples whose runtime is installed on this machine. */
const EXAMPLES = (
  [
    ['Node', 'node', ['examples/verify-webhook/verify.mjs']],
    ['Python', 'python3', ['examples/verify-webhook/verify.py']],
    ['PHP', 'php', ['examples/verify-webhook/verify.php']],
    ['Go', 'go', ['run', 'examples/verify-webhook/verify.go']],
  ] as const
).filter(([, command]) => spawnSync(command, ['version']).error === undefined);

const headersFor = (...signers: [string, ...string[]]) =>
  signatureHeaders({ eventId: 'evt_1', sentAt: Date.now(), body: BODY, signers });

/** The Standard Webhooks library encodes a text key by character code, so a UTF-8 key is passed as bytes. */
const oracle = (secret: string) =>
  secret.startsWith('whsec_')
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret, 'utf8'), { format: 'raw' });

describe('webhook signature', () => {
  it.each([
    ['the UTF-8 bytes of the secret', PLAIN_SECRET],
    ['the decoded bytes after whsec_', BASE64_SECRET],
  ])('is accepted by the Standard Webhooks library when the key is %s [D-53]', (_, secret) => {
    const headers = headersFor(secret);
    expect(oracle(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(() => oracle(OLD_SECRET).verify(BODY, headers)).toThrow('No matching signature');
    expect(() => oracle(secret).verify(Buffer.concat([BODY, Buffer.from(' ')]), headers)).toThrow(
      'No matching signature',
    );
  });

  it.each([PLAIN_SECRET, BASE64_SECRET])(
    'in xpay-signature is the HMAC-SHA512 of the body alone, keyed by the text "%s" [D-53]',
    (secret) => {
      const right = createHmac('sha512', Buffer.from(secret, 'utf8')).update(BODY);
      expect(headersFor(secret)['xpay-signature']).toBe(right.digest('base64'));
    },
  );

  it.each(EXAMPLES)('is verified by the example in %s [D-53]', (_, command, args) => {
    for (const secret of [PLAIN_SECRET, BASE64_SECRET]) {
      const verify = (body: Buffer) =>
        spawnSync(command, [...args, secret], {
          input: JSON.stringify({ headers: headersFor(secret), body: body.toString('base64') }),
          encoding: 'utf8',
        });
      expect(verify(BODY)).toMatchObject({
        stdout: 'webhook-signature valid\nxpay-signature valid\n',
        stderr: '',
      });
      expect(verify(Buffer.from('{}')).stdout).toBe(
        'webhook-signature wrong\nxpay-signature wrong\n',
      );
    }
  });

  it('equals a known example byte for byte [D-53]', () => {
    const headers = signatureHeaders({
      eventId: 'evt_1',
      sentAt: 1_795_176_000_999,
      body: Buffer.from('{}'),
      signers: ['secret'],
    });
    expect(headers).toEqual({
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1795176000',
      'webhook-signature': 'v1,ew4KNCJed4k+sbArDnVEb1cuY2efCewyJLOvlBlbwoE=',
      'xpay-signature':
        '1vESanNbWnVPblhDTxcL3v3/raLBf2fZu9htl2ablPgKkpeGZb9+pCODKz9POFbikBp8Ao4WyB77tDKYocAHcg==',
    });
  });

  it('has a second value in webhook-signature for the previous secret, and none in xpay-signature [D-53]', () => {
    const headers = headersFor(PLAIN_SECRET, OLD_SECRET);
    expect(headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
    expect(oracle(PLAIN_SECRET).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(oracle(OLD_SECRET).verify(BODY, headers)).toEqual(JSON.parse(BODY.toString()));
    expect(headers['xpay-signature']).toBe(headersFor(PLAIN_SECRET)['xpay-signature']);
  });
});
