import type { Db } from '../../db/client.ts';
import { countSealedBefore, resealAll } from '../../db/repositories/merchants/sealed-secrets.ts';
import type { SealedPlace } from '../../db/repositories/merchants/sealed-secrets.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import type { Sealing } from '../../runtime/sealing.ts';
import type { Recorder } from '../command-line/operator-action.ts';

const BATCH = 100;

/** Encrypts each stored secret with the current key. A repeat continues. `remaining`: no key of the ring decrypts these. */
export async function reencryptSecrets(db: Db, sealing: Sealing, record: Recorder) {
  const [currentKeyId = Buffer.alloc(0)] = sealing.keyIds;
  const reseal = ({ owner, merchantId, id }: SealedPlace, stored: Buffer): Buffer | null => {
    const boundTo = owner === 'webhook endpoint' ? id : accountBinding(merchantId, id);
    const secret = sealing.openIfPossible(stored, boundTo);
    return secret === null ? null : sealing.seal(secret, boundTo);
  };
  const inBatch = (tx: Db, secrets: number): Promise<void> => {
    const facts = { secrets };
    return record(tx, {
      command: 'merchant reencrypt',
      subject: 'secrets',
      merchantId: null,
      facts,
    });
  };
  const done = await resealAll(db, { currentKeyId, reseal, batch: BATCH, inBatch });
  return { done, remaining: await countSealedBefore(db, currentKeyId) };
}
