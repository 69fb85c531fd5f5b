import { invariant } from './errors.ts';

export const ID_PREFIXES = [
  'att', // charge attempt
  'clk', // test clock
  'cmd', // command sent to a workflow
  'cns', // consent of a payer
  'cs', // checkout session
  'cus', // customer
  'dcl', // declaration of a payer
  'dlv', // webhook delivery
  'dp', // dispute
  'evt', // event
  'in', // payment intent
  'lnk', // link
  'mer', // merchant
  'pmt', // payment method
  'prt', // session of a payer's own page
  'rec', // recovery of webhook events
  'req', // HTTP request
  'rf', // refund
  'sf', // storefront
  'sm', // setup session
  'sub', // subscription
  'whc', // webhook configuration
] as const;

export type IdPrefix = (typeof ID_PREFIXES)[number];

/** A source of random bytes. In production the source is cryptographically secure. */
export type RandomBytes = (byteCount: number) => Uint8Array;

/** The digits are in ASCII order, so texts of the same length sort like the numbers that they encode. */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const TIME_BYTES = 6;
const RANDOM_BYTES = 10;
const TIME_LIMIT_MS = 2 ** (8 * TIME_BYTES);

/** Characters after the prefix and `_`: the fewest that hold 128 bits in base 62. */
const ID_BODY_LENGTH = 22;

/** Characters for a cycle's number, enough for 3,844 cycles; 1,200 are allowed. */
const CYCLE_DIGITS = 2;

/** `_` and 22 base62 characters: 48 bits of time, 80 random bits. Compared byte by byte, ids sort by time. */
export function newId(prefix: IdPrefix, atMs: number, random: RandomBytes): string {
  invariant(
    Number.isSafeInteger(atMs) && atMs >= 0 && atMs < TIME_LIMIT_MS,
    'the time of an id is a whole number of milliseconds that fits 48 bits',
  );
  const randomBytes = random(RANDOM_BYTES);
  invariant(randomBytes.length === RANDOM_BYTES, 'the random source gave the bytes asked for');

  const bytes = new Uint8Array(TIME_BYTES + RANDOM_BYTES);
  let time = atMs;
  for (let at = TIME_BYTES - 1; at >= 0; at -= 1) {
    bytes[at] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes.set(randomBytes, TIME_BYTES);
  return `${prefix}_${base62(bytes, ID_BODY_LENGTH)}`;
}

/** True for a string in the form of {@link newId} or {@link intentIdOfCycle}. Does not look for the record. */
export function isId(prefix: IdPrefix, value: unknown): value is string {
  if (typeof value !== 'string' || !value.startsWith(`${prefix}_`)) return false;
  const body = value.slice(prefix.length + 1);
  const isLong = prefix === 'in' && body.length === ID_BODY_LENGTH + CYCLE_DIGITS;
  return (body.length === ID_BODY_LENGTH || isLong) && /^[0-9A-Za-z]+$/.test(body);
}

export function commandIdFrom(hash: Uint8Array): string {
  return `cmd_${base62(hash.subarray(0, TIME_BYTES + RANDOM_BYTES), ID_BODY_LENGTH)}`;
}

/** Returns the id of the record that a command creates, the same for a repeat: the command's id with another prefix. */
export function idOfCommand(prefix: IdPrefix, commandId: string): string {
  invariant(isId('cmd', commandId), 'a command has an id of its own');
  return `${prefix}_${commandId.slice('cmd_'.length)}`;
}

/**
 * Returns the id of a billing cycle's intent. It depends only on the subscription and the cycle's number, so a restored
 * database gives the cycle the same key at the gateway.
 */
export function intentIdOfCycle(subscriptionId: string, cycleNumber: number): string {
  const body = subscriptionId.slice('sub_'.length);
  return `in_${body}${base62(Uint8Array.of(cycleNumber >> 8, cycleNumber & 255), CYCLE_DIGITS)}`;
}

/** Returns the bytes, one big-endian number, in base 62 with leading zeros. Throws if they need more than `width`. */
export function base62(bytes: Uint8Array, width: number): string {
  let rest = 0n;
  for (const byte of bytes) rest = rest * 256n + BigInt(byte);
  let text = '';
  for (let digits = 0; digits < width; digits += 1) {
    text = ALPHABET.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  invariant(rest === 0n, 'the number fits the width');
  return text;
}

/** Default length of a {@link randomToken}: 62^22 is more than 2^130. */
const TOKEN_LENGTH = 22;

const TOKEN = /^[0-9A-Za-z]{22}$/;

/** True for a text in the form of a {@link randomToken} of default length. Does not tell who made it. */
export function isToken(value: string | null): value is string {
  return value !== null && TOKEN.test(value);
}

/** Returns a token of the first half of a SHA-256: 128 bits. */
export function tokenFrom(hash: Uint8Array): string {
  return base62(hash.subarray(0, TIME_BYTES + RANDOM_BYTES), TOKEN_LENGTH);
}

/** 4 × 62. Bytes from 248 on are dropped, because they would make some characters more likely. */
const FAIR_BYTES = 248;

/** Returns an unguessable text without a time. Each base62 character has equal chances: 22 are 130 bits, 43 are 256. */
export function randomToken(random: RandomBytes, length: number = TOKEN_LENGTH): string {
  let text = '';
  // A fair source fills the text in one or two rounds. The limit of 64 rounds stops a broken source.
  for (let round = 0; round < 64 && text.length < length; round += 1) {
    for (const byte of random(length + 8)) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET.charAt(byte % 62);
    }
  }
  invariant(text.length === length, 'the random source gives bytes below 248 now and then');
  return text;
}
