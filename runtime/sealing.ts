import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

/** Keeps secrets that must be read again (a webhook's signing secret) unreadable in the database. */
export interface Sealing {
  /**
   * Encrypts a text. `boundTo` names the record it belongs to: a sealed secret copied into another
   * record cannot be opened there. Sealing the same text again gives other bytes.
   */
  seal(secret: string, boundTo: string): Buffer;
  /** The text again. Throws {@link SealingError}, without the text, when it cannot be trusted. */
  open(sealed: Uint8Array, boundTo: string): string;
}

/** A sealed secret that this process's key does not open. Never holds the secret. */
export class SealingError extends Error {
  override readonly name = 'SealingError';
}

const CIPHER = 'aes-256-gcm';
/** First byte of every record: version of the layout version, key id, nonce, tag, ciphertext. */
const LAYOUT = 1;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;

/**
 * Sealing with AES-256-GCM under one 32-byte key. Each record carries the id of its key (a hash
 * that does not reveal it), so that a wrong key is told from a damaged record. Rule: D-55.
 */
export function createSealing(key: Buffer): Sealing {
  if (key.length !== 32) throw new SealingError('the sealing key must have 32 bytes');
  const keyId = createHash('sha256').update('sealing-key-id').update(key).digest();
  const ownKeyId = keyId.subarray(0, KEY_ID_BYTES);

  return {
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
        throw new SealingError('the record was changed or belongs elsewhere', { cause: error });
      }
    },
  };
}
