// Verifies a webhook. Usage: node verify.mjs <secret> < delivery.json
// delivery.json: {"headers": {…}, "body": "<the received bytes, in Base64>"}
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** `body`: the received bytes, before any parsing. `secret`: the text of `eventSigner`. */
export function isGenuine(body, headers, secret) {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const right = createHmac('sha256', key).update(signed).update(body).digest('base64');
  const isRecent = Math.abs(Date.now() / 1_000 - Number(headers['webhook-timestamp'])) < 300;
  const given = (headers['webhook-signature'] ?? '').split(' ');
  return isRecent && given.some((signature) => isSame(signature, `v1,${right}`));
}

/** Checks the older signature, which does not stop a replay. Its key is the secret's whole text. */
export function hasXpaySignature(body, headers, secret) {
  const right = createHmac('sha512', secret).update(body).digest('base64');
  return isSame(headers['xpay-signature'] ?? '', right);
}

function isSame(a, b) {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

const { headers, body } = JSON.parse(readFileSync(0, 'utf8'));
const bytes = Buffer.from(body, 'base64');
const [secret] = process.argv.slice(2);
console.log(`webhook-signature ${isGenuine(bytes, headers, secret) ? 'valid' : 'wrong'}`);
console.log(`xpay-signature ${hasXpaySignature(bytes, headers, secret) ? 'valid' : 'wrong'}`);
