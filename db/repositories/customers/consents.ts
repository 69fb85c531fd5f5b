import { createHash } from 'node:crypto';
import type { Db } from '../../client.ts';
import { consents } from '../../schema/consents.ts';

export type Consent = typeof consents.$inferSelect;

/** Stores a consent. A repeat in the same words, in one session, stores nothing. */
export async function insertConsent(db: Db, consent: Omit<Consent, 'digest'>): Promise<void> {
  const digest = createHash('sha256').update(consent.shown).digest();
  await db
    .insert(consents)
    .values({ ...consent, digest })
    .onConflictDoNothing();
}
