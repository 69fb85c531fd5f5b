import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** Encrypts secrets that must be decrypted later, such as a webhook's signing secret. */
export interface Sealing {
  /** Only the same `boundTo`, the id of the row, decrypts the result. Repeats give other bytes. */
  seal(secret: string, boundTo: string): Buffer;
  /** Decrypts a text. Throws {@link SealingError} for another key, another `boundTo` or changed bytes. */
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
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;

/** AES-256-GCM. A hash of the key in the record tells a wrong key from changed bytes. */
export function createSealing(key: Buffer): Sealing {
  if (key.length !== 32) throw new SealingError('the sealing key must have 32 bytes');
  const keyId = createHash('sha256').update('sealing-key-id').update(key).digest();
  const ownKeyId = keyId.subarray(0, KEY_ID_BYTES);

  const sealing: Sealing = {
    seal(secret, boundTo) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(boundTo));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([
        Buffer.from([LAYOUT]),
        ownKeyId,
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
      if (!take(KEY_ID_BYTES).equals(ownKeyId)) throw new SealingError('sealed with another key');
      const nonce = take(NONCE_BYTES);
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
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
