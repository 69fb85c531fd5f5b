import { randomBytes } from 'node:crypto';
import type { JSONValue, TransactionSql } from 'postgres';
import { noSuch } from './errors.ts';
import type { StripeObject } from './errors.ts';
import type { Params } from './form.ts';
import { KINDS } from './kinds.ts';
import type { Kind } from './kinds.ts';
import { listPage } from './lists.ts';
import type { ListOrder } from './lists.ts';

/** `body`: as Stripe sends it. `hidden`: what only the double reads, such as a card number. */
export interface Stored {
  readonly id: string;
  readonly accountId: string;
  readonly body: StripeObject;
  readonly hidden: StripeObject;
}

export type Book = ReturnType<typeof bookOf>;

export function bookOf(tx: TransactionSql, accountId: string) {
  const find = async (id: string, kind?: Kind): Promise<Stored | null> => {
    const [row] = await tx<Row[]>`
      select id, account_id, body, hidden from stripe_double.object
      where id = ${id} and account_id = ${accountId}
        ${kind === undefined ? tx`` : tx`and kind = ${kind}`}`;
    return row === undefined ? null : fromRow(row);
  };

  return {
    tx,
    accountId,
    find,

    async insert(kind: Kind, body: StripeObject, hidden: StripeObject = {}): Promise<Stored> {
      const id = String(body['id']);
      await tx`
        insert into stripe_double.object (id, account_id, kind, created, body, hidden)
        values (${id}, ${accountId}, ${kind}, ${Number(body['created'])},
          ${tx.json(body as JSONValue)}, ${tx.json(hidden as JSONValue)})`;
      return { id, accountId, body, hidden };
    },

    /** Throws `resource_missing`. `param`: the request's parameter that contained the id. */
    async get(kind: Kind, id: string, param?: string): Promise<Stored> {
      const found = await find(id, kind);
      if (found === null) throw noSuch(KINDS[kind], id, param);
      return found;
    },

    /** Like `get`, and locks the object until the transaction ends. */
    async lock(kind: Kind, id: string, param?: string): Promise<Stored> {
      await tx`
        select 1 from stripe_double.object
        where id = ${id} and account_id = ${accountId} and kind = ${kind} for update`;
      const found = await find(id, kind);
      if (found === null) throw noSuch(KINDS[kind], id, param);
      return found;
    },

    async update(
      stored: Stored,
      changes: StripeObject,
      hidden: StripeObject = {},
    ): Promise<Stored> {
      const next = {
        ...stored,
        body: { ...stored.body, ...changes },
        hidden: { ...stored.hidden, ...hidden },
      };
      await tx`
        update stripe_double.object
        set body = ${tx.json(next.body as JSONValue)}, hidden = ${tx.json(next.hidden as JSONValue)}
        where id = ${stored.id}`;
      return next;
    },

    async where(kind: Kind, field: string, value: string): Promise<Stored[]> {
      const rows = await tx<Row[]>`
        select id, account_id, body, hidden from stripe_double.object
        where account_id = ${accountId} and kind = ${kind} and ${tx.unsafe(`body->>'${field}'`)} = ${value}
        order by sequence`;
      return rows.map(fromRow);
    },

    list: (order: ListOrder, params: Params) => listPage(tx, accountId, order, params),
  };
}

interface Row {
  readonly id: string;
  readonly account_id: string;
  readonly body: StripeObject;
  readonly hidden: StripeObject;
}

function fromRow(row: Row): Stored {
  return { id: row.id, accountId: row.account_id, body: row.body, hidden: row.hidden };
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export function newId(prefix: string): string {
  const letters = [...randomBytes(24)].map((byte) => ALPHABET[byte % ALPHABET.length]);
  return `${prefix}_${letters.join('')}`;
}
