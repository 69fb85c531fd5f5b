import { createHash, randomBytes } from 'node:crypto';
import type { TransactionSql } from 'postgres';
import type { DeclineCode } from '../../domain/declines.ts';
import { cardExpiresAt } from '../../domain/payment-method.ts';
import type { SavedCard } from '../port.ts';
import type { ReadCard } from './card-form.ts';
import type { BookSql } from './book-schema.ts';
import { jsonOf, keyReused, newId } from './charge-book.ts';
import type { TestCardMoment } from './test-cards.ts';

const TOKEN_LIFETIME_MS = 10 * 60_000;

/** Shortest time for which tokens stay stored after their expiry, for repeats of the request that redeemed them. */
const TOKEN_RETENTION_MS = 24 * 3_600_000;

export interface SaveOrder {
  readonly key: string;
  readonly token: string;
  readonly session: string;
  readonly shouldVerify: boolean;
  readonly verifiedAt: number;
  readonly paymentMethodId: string | null;
  readonly customerId: string | null;
}

export type SaveResult =
  | {
      readonly card: SavedCard;
      /** When the card's token was issued, in epoch ms. */
      readonly enteredAt: number;
      readonly isReplay: boolean;
    }
  | { readonly refused: DeclineCode; readonly reason: string };

export type CardBook = ReturnType<typeof createCardBook>;

export function createCardBook(sql: BookSql) {
  return {
    /** Issues a one-time token for a card. The token is valid only together with `session`. */
    async issueToken(read: ReadCard, session: string, now: number): Promise<string> {
      const token = `ptk_${randomBytes(24).toString('base64url')}`;
      await sql`
        insert into sandbox_gateway.token (token_hash, session_hash, brand, country, last_four,
          expiry_month, expiry_year, code, code_when, advice, expires_at)
        values (${hash(token)}, ${hash(session)}, ${read.card.brand}, ${read.card.country},
          ${read.lastFourDigit}, ${read.expiryMonth}, ${read.expiryYear}, ${read.card.code},
          ${read.card.when}, ${jsonOf(read.card.advice)}::text::jsonb,
          ${now + TOKEN_LIFETIME_MS})`;
      return token;
    },

    /**
     * Redeems a token. A repeat with key and customer returns the same card. Refuses an unknown, expired or
     * used token and one of another session.
     * @throws RequestRefused 422 if the key redeemed another token.
     */
    save: (order: SaveOrder, now: number): Promise<SaveResult> =>
      sql.begin((tx) => saveWithin(tx, order, now)),

    async find(gatewayMethodId: string): Promise<SavedCard | null> {
      const [card] = await sql<SavedCard[]>`
        select ${cardOf(sql)} from sandbox_gateway.method where id = ${gatewayMethodId}`;
      return card ?? null;
    },

    async forgetOldTokens(now: number): Promise<void> {
      await sql`
        delete from sandbox_gateway.token where expires_at < ${now - TOKEN_RETENTION_MS}`;
    },
  };
}

const cardOf = (sql: BookSql | TransactionSql) => sql`id as gateway_method_id, brand, country,
  last_four as last_four_digit, expiry_month, expiry_year`;

async function saveWithin(tx: TransactionSql, order: SaveOrder, now: number): Promise<SaveResult> {
  const tokenHash = hash(order.token);
  // The row's lock serialises requests with the same token.
  const [token] = await tx<TokenRow[]>`
    select * from sandbox_gateway.token where token_hash = ${tokenHash} for update`;

  // An unknown token and a token of another session get the same answer, which reveals no valid token.
  if (token === undefined || token.sessionHash !== hash(order.session)) return spent('unknown');

  const enteredAt = token.expiresAt - TOKEN_LIFETIME_MS;
  const [saved] = await tx<(SavedCard & { tokenHash: string; customerId: string | null })[]>`
    select ${cardOf(tx)}, token_hash, customer_id from sandbox_gateway.method where key = ${order.key}`;
  if (saved !== undefined) {
    const { tokenHash: savedHash, customerId, ...card } = saved;
    if (savedHash !== tokenHash) throw keyReused();
    if (customerId !== order.customerId) return spent('used');
    return { card, enteredAt, isReplay: true };
  }

  if (token.usedByKey !== order.key) {
    if (token.usedByKey !== null) return spent('used');
    if (token.expiresAt <= now) return spent('expired');
    if (!(await claim(tx, tokenHash, order.key))) throw keyReused();
  }

  const code = refusalWhenSaved(token, order);
  if (code !== null) return { refused: code, reason: 'card_refused' };
  const [card] = await tx<SavedCard[]>`
    insert into sandbox_gateway.method (id, key, token_hash, brand, country, last_four,
      expiry_month, expiry_year, charge_code, charge_advice, payment_method_id, customer_id,
      created_at)
    select ${newId('pm')}, ${order.key}, token_hash, brand, country, last_four, expiry_month,
      expiry_year, code, advice, ${order.paymentMethodId}, ${order.customerId}, ${now}
    from sandbox_gateway.token where token_hash = ${tokenHash}
    returning ${cardOf(tx)}`;
  if (card === undefined) throw new Error('the locked token is gone');
  return { card, enteredAt, isReplay: false };
}

/** The refusal of a token that cannot be redeemed. The payer has to enter the card again. */
function spent(why: 'unknown' | 'used' | 'expired'): SaveResult {
  return { refused: 'processing_error', reason: `token_${why}` };
}

/** Stores that the key redeems the token. False if the key has already redeemed another token. */
async function claim(tx: TransactionSql, tokenHash: string, key: string): Promise<boolean> {
  const claimed = await tx`
    update sandbox_gateway.token set used_by_key = ${key} where token_hash = ${tokenHash}
      and not exists (select from sandbox_gateway.token where used_by_key = ${key})`;
  return claimed.count === 1;
}

function refusalWhenSaved(token: TokenRow, order: SaveOrder): DeclineCode | null {
  if (token.codeWhen === 'save') return token.code;
  if (!order.shouldVerify) return null;
  if (token.codeWhen === 'charge') return token.code;
  return order.verifiedAt >= cardExpiresAt(token) ? 'expired_card' : null;
}

interface TokenRow extends Pick<SavedCard, 'expiryMonth' | 'expiryYear'> {
  readonly sessionHash: string;
  readonly code: DeclineCode | null;
  readonly codeWhen: TestCardMoment | null;
  readonly expiresAt: number;
  readonly usedByKey: string | null;
}

function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
