import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { listOf } from './environment.ts';

/** Encrypts secrets that must be decrypted later, such as a webhook's signing secret. */
export interface Sealing {
  /** The id of each key of the ring, the current key's first. A sealed record has its key's id in the bytes 2 to 9. */
  readonly keyIds: readonly Buffer[];
  /** Encrypts with the current key. Only the same `boundTo`, the id of the row, decrypts the result. Repeats give other bytes. */
  seal(secret: string, boundTo: string): Buffer;
  /** Decrypts a text. Throws {@link SealingError} for a key outside the ring, another `boundTo` or changed bytes. */
  open(sealed: Uint8Array, boundTo: string): string;
  /** As {@link open}, but returns null where that throws. */
  openIfPossible(sealed: Uint8Array, boundTo: string): string | null;
}

/** Thrown for a key of a wrong length, and if a sealed secret cannot be decrypted. Never contains the secret. */
export class SealingError extends Error {
  override readonly name = 'SealingError';
}

const CIPHER = 'aes-256-gcm';
/** Version of the layout, the first byte. Layout: version, key id, nonce, tag, ciphertext. */
const LAYOUT = 1;
export const KEY_BYTES = 32;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;

/** Reads keys in Base64, separated by commas. The first one is the current key. */
export function keyRingOf(text: string): Buffer[] {
  return listOf(text).map((key) => Buffer.from(key, 'base64'));
}

/** AES-256-GCM. The first key encrypts, every key decrypts. Throws for an empty ring or a key of a wrong length. */
export function createSealing(ring: readonly Buffer[]): Sealing {
  if (ring.some((key) => key.length !== KEY_BYTES)) {
    throw new SealingError(`a sealing key must have ${KEY_BYTES} bytes`);
  }
  const keys = ring.map((key) => ({ id: keyIdOf(key), key }));
  const [current] = keys;
  if (current === undefined) throw new SealingError('there is no sealing key');

  const sealing: Sealing = {
    keyIds: keys.map(({ id }) => id),

    seal(secret, boundTo) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, current.key, nonce).setAAD(Buffer.from(boundTo));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([
        Buffer.from([LAYOUT]),
        current.id,
        nonce,
        cipher.getAuthTag(),
        ciphertext,
      ]);
    },

    open(sealed, boundTo) {
      const record = Buffer.from(sealed);
      if (record.length < HEADER_BYTES || record[0] !== LAYOUT) {
        throw new SealingError('not a sealed record');
      }
      let offset = 1;
      const take = (length: number): Buffer => record.subarray(offset, (offset += length));
      const keyId = take(KEY_ID_BYTES);
      const used = keys.find(({ id }) => id.equals(keyId));
      if (used === undefined) throw new SealingError('sealed with another key');
      const nonce = take(NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, used.key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(boundTo))
        .setAuthTag(take(TAG_BYTES));
      try {
        return decipher.update(record.subarray(offset), undefined, 'utf8') + decipher.final('utf8');
      } catch (error) {
        throw new SealingError('the sealed record was changed or belongs to another record', {
          cause: error,
        });
      }
    },

    openIfPossible(sealed, boundTo) {
      try {
        return sealing.open(sealed, boundTo);
      } catch (error) {
        if (error instanceof SealingError) return null;
        throw error;
      }
    },
  };
  return sealing;
}

/** A hash of the key. In the record it tells a wrong key from changed bytes. */
function keyIdOf(key: Buffer): Buffer {
  const hash = createHash('sha256').update('sealing-key-id').update(key).digest();
  return hash.subarray(0, KEY_ID_BYTES);
}
