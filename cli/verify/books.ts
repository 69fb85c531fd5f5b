import { readFileSync } from 'node:fs';
import type { ReservedSql } from 'postgres';
import { openDriver } from '../../db/connection.ts';
import { stateProblem } from '../../domain/subscription/recorded-state.ts';
import type { ListedCharge, ListedRefund } from '../../gateways/processor.ts';
import { accountBooks, sandboxBook } from './gateway-books.ts';
import type { AccountsPlace, GatewayBook } from './gateway-books.ts';
import { messageOf } from '../command-line/terminal.ts';
import { readLedgerProblems } from './ledger-check.ts';

/** A book is one party's own record: our rows, a gateway's charges, a receiver's webhooks, a client's answers. */
export interface Places {
  readonly databaseUrl: string;
  readonly gateway: { readonly url: string; readonly key: string } | null;
  /** The merchants' accounts. Absent: their books are not read. */
  readonly accounts?: AccountsPlace | undefined;
  /** JSON lines `{ eventId, eventType, isSignatureValid, isAcknowledged }`; the last is true if absent. */
  readonly receiverBook: string | null;
  /** A file with one JSON object a line for each answer of the API: `{ key, status, body }`. */
  readonly clientBook: string | null;
}

/** A snapshot of Postgres, and the other books as temporary tables, for SQL queries. */
export interface Books {
  readonly has: { gateway: boolean; receiver: boolean; client: boolean };
  /** The accounts that could not be read, each with the reason. Their books are empty. */
  readonly unread: ReadonlyMap<string, string>;
  ask<Row>(query: string): Promise<Row[]>;
  close(): Promise<void>;
}

const STATEMENT_TIMEOUT_MS = 120_000;
const BATCH = 2_000;

const TABLES = `
  create temp table book_charge (
    gateway text, key text, merchant_id text, intent_id text, subscription_id text, amount_minor bigint,
    currency text, outcome text, charge_id text, created_at timestamptz);
  create index on book_charge (key);
  create temp table book_refund (
    gateway text, key text, merchant_id text, charge_id text, refund_id text, amount_minor bigint, status text,
    created_at timestamptz);
  create index on book_refund (key);
  create index on book_refund (charge_id);
  create temp table book_gateway (gateway text primary key, from_at timestamptz);
  create temp table book_webhook (
    event_id text, event_type text, is_signature_valid boolean, is_acknowledged boolean);
  create temp table book_answer (key text, status integer, body text);
  create temp table unreadable (merchant_id text, id text, problem text);
  create temp table underived (merchant_id text, id text, problem text);`;

/** Hides the rows whose state is unreadable, on which the queries of the checks would fail. */
const READABLE = `
  create temp view subscription as select * from public.subscription s where not exists (
    select from unreadable u where u.merchant_id = s.merchant_id and u.id = s.id)`;

/** The snapshot is older than the gateways' books: what only they have is newer, or wrong. Throws. */
export async function openBooks(places: Places): Promise<Books> {
  const settings = {
    max: 1,
    connect_timeout: 10,
    onnotice: () => undefined,
    connection: { application_name: 'perennial-verify', statement_timeout: STATEMENT_TIMEOUT_MS },
  };
  const client = openDriver(places.databaseUrl, settings, STATEMENT_TIMEOUT_MS);
  const session = await client.reserve();
  const close = async (): Promise<void> => {
    session.release();
    await client.end({ timeout: 5 });
  };
  try {
    await session.unsafe(TABLES);
    await session.unsafe(READABLE);
    await fill(session, 'book_webhook', readLines(places.receiverBook).map(webhookRow));
    await fill(session, 'book_answer', readLines(places.clientBook).map(answerRow));
    await session`begin isolation level repeatable read, read only`;
    await session`select count(*) from merchant`; // the first query takes the snapshot
    await fill(session, 'unreadable', await readStates(session));
    // The statement goes on while its batches are derived.
    await session.unsafe('set local statement_timeout = 0');
    await fill(session, 'underived', await readLedgerProblems(session));
    await session.unsafe(`set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
    const { gateway } = places;
    if (gateway) await readGateway(session, sandboxBook(gateway.url, gateway.key));
    const accounts = places.accounts ? await accountBooks(session, places.accounts) : [];
    const unread = await readAccounts(session, accounts);
    return {
      unread,
      has: {
        gateway: gateway !== null || accounts.length > 0,
        receiver: places.receiverBook !== null,
        client: places.clientBook !== null,
      },
      ask: async <Row>(query: string) => [...(await session.unsafe(query))] as Row[],
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Row = Record<string, string | number | boolean | null>;

async function fill(session: ReservedSql, table: string, rows: readonly Row[]): Promise<void> {
  for (let at = 0; at < rows.length; at += BATCH) {
    await session`insert into ${session(table)} ${session(rows.slice(at, at + BATCH))}`;
  }
}

async function readStates(session: ReservedSql): Promise<Row[]> {
  const wrong: Row[] = [];
  const batches = session<{ merchantId: string; id: string; state: unknown }[]>`
    select merchant_id as "merchantId", id, state from public.subscription`.cursor(BATCH);
  for await (const batch of batches) {
    for (const { merchantId, id, state } of batch) {
      const problem = stateProblem(state);
      if (problem !== null) wrong.push({ merchant_id: merchantId, id, problem });
    }
  }
  return wrong;
}

async function readGateway(session: ReservedSql, book: GatewayBook): Promise<void> {
  // A test and a live merchant may share an account's name. Their books begin at the same instant.
  await session`insert into book_gateway
    values (${book.gateway}, ${book.from.toISOString()}) on conflict do nothing`;
  const { gateway, pages } = book;
  for await (const { charges, refunds } of pages) {
    const charged = charges.map((charge) => ({
      ...rowOf(gateway, charge),
      intent_id: charge.intentId,
      subscription_id: charge.subscriptionId,
      currency: charge.currency,
      outcome: charge.outcome,
    }));
    const refunded = refunds.map((refund) => ({
      ...rowOf(gateway, refund),
      refund_id: refund.gatewayRefundId,
      status: refund.status,
    }));
    await fill(session, 'book_charge', charged);
    await fill(session, 'book_refund', refunded);
  }
}

function rowOf(gateway: string, listed: ListedCharge | ListedRefund): Row {
  return {
    gateway,
    key: listed.key,
    merchant_id: listed.merchantId,
    charge_id: listed.gatewayChargeId,
    amount_minor: listed.amountMinor,
    created_at: new Date(listed.createdAt).toISOString(),
  };
}

/** One merchant's revoked key must not hide the books of the others. */
async function readAccounts(
  session: ReservedSql,
  accounts: readonly GatewayBook[],
): Promise<Map<string, string>> {
  const unread = new Map<string, string>();
  for (const account of accounts) {
    // A database error ends the transaction, so the next statement throws.
    await readGateway(session, account).catch((error: unknown) =>
      unread.set(account.gateway, messageOf(error)),
    );
  }
  const names = [...unread.keys()];
  for (const table of ['book_charge', 'book_refund', 'book_gateway']) {
    await session`delete from ${session(table)} where gateway = any(${names})`;
  }
  return unread;
}

/** Reads one JSON object a line. Ignores an incomplete last line, whose writer may have been killed. */
function readLines(file: string | null): Record<string, unknown>[] {
  if (file === null) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>);
}

function webhookRow(line: Record<string, unknown>): Row {
  return {
    event_id: String(line['eventId']),
    event_type: String(line['eventType']),
    is_signature_valid: line['isSignatureValid'] === true,
    is_acknowledged: line['isAcknowledged'] !== false,
  };
}

function answerRow(line: Record<string, unknown>): Row {
  return {
    key: String(line['key']),
    status: Number(line['status']),
    body: String(line['body']),
  };
}
