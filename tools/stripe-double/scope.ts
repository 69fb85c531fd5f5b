import type { JSONValue } from 'postgres';
import type { Decline } from './cards.ts';
import type { Book, Stored } from './book.ts';
import type { StripeObject } from './errors.ts';

export interface StripeAnswer {
  readonly status: number;
  readonly body: StripeObject;
}

export interface Scope {
  readonly book: Book;
  readonly now: number;
  readonly publicUrl: string;
  /** Sends an event with `object` after the transaction has committed. */
  emit(type: string, object: StripeObject): void;
}

/** `processing`: decided later. `authentication`: needs 3D Secure, declined if the payer is absent. */
export type ForcedOutcome =
  | ({ readonly kind: 'decline' } & Decline)
  | { readonly kind: 'processing' | 'authentication' };

/** Uses up and returns the oldest forced outcome that matches this payment; null if none matches. */
export async function takeForcedOutcome(
  { book }: Scope,
  intent: Stored,
  methodId: string,
): Promise<ForcedOutcome | null> {
  const metadata = (intent.body['metadata'] ?? {}) as JSONValue;
  const [row] = await book.tx<{ outcome: ForcedOutcome }[]>`
    update stripe_double.forced_outcome set times_left = times_left - 1
    where id = (
      select id from stripe_double.forced_outcome
      where times_left > 0
        and (match->>'accountId' is null or match->>'accountId' = ${book.accountId})
        and (match->>'paymentMethodId' is null or match->>'paymentMethodId' = ${methodId})
        and ${book.tx.json(metadata)}::jsonb @> coalesce(match->'metadata', '{}'::jsonb)
      order by id limit 1 for update skip locked)
    returning outcome`;
  return row?.outcome ?? null;
}
