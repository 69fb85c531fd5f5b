import { readFileSync } from 'node:fs';
import postgres from 'postgres';
import type { Sql } from 'postgres';

/** Postgres schema with all data of the gateway (its book). Apart from tests, no other program reads or writes it. */
const BOOK_SCHEMA = 'sandbox_gateway';

const ADVISORY_LOCK = 7_312_026_111;

/** Time limit of a statement in ms, shorter than the clients' time limit of a request. */
const STATEMENT_TIMEOUT_MS = 5_000;

export type BookSql = Sql<{ bigint: number }>;

/** Creates missing tables and functions, one server at a time. Rejects without a database within 10 s. */
export async function openBook(databaseUrl: string): Promise<BookSql> {
  const url = new URL(databaseUrl);
  const caFile = url.searchParams.get('sslrootcert');
  // The driver would send it to the server, which refuses it.
  url.searchParams.delete('sslrootcert');
  const sql = postgres(url.href, {
    ...(caFile === null ? {} : { ssl: { ca: readFileSync(caFile) } }),
    // One process on one core cannot use more connections.
    max: 8,
    connect_timeout: 10,
    fetch_types: false,
    onnotice: () => undefined,
    transform: { column: { from: postgres.toCamel } },
    // Amounts and instants are safe integers.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: { application_name: 'sandbox-gateway', statement_timeout: STATEMENT_TIMEOUT_MS },
  });
  try {
    await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${ADVISORY_LOCK})`;
      await tx.unsafe(TABLES);
      await tx.unsafe(BOOK_CHARGE);
    });
  } catch (error) {
    await sql.end({ timeout: 1 });
    throw error;
  }
  return sql;
}

/** No card number, CVC or name is stored; of bearer secrets only the SHA-256. Instants are epoch ms. */
const TABLES = `
create schema if not exists ${BOOK_SCHEMA};

create table if not exists ${BOOK_SCHEMA}.token (
  token_hash   text primary key,
  session_hash text not null,
  brand        text not null,
  country      text not null,
  last_four    text not null,
  expiry_month integer not null,
  expiry_year  integer not null,
  code         text,
  code_when    text,
  advice       jsonb,
  expires_at   bigint not null,
  -- A key redeems one token, and a token is redeemed by one key.
  used_by_key  text unique
);

create table if not exists ${BOOK_SCHEMA}.method (
  id                text primary key,
  key               text not null unique,
  token_hash        text not null unique,
  brand             text not null,
  country           text not null,
  last_four         text not null,
  expiry_month      integer not null,
  expiry_year       integer not null,
  charge_code       text,
  charge_advice     jsonb,
  payment_method_id text,
  customer_id       text,
  created_at        bigint not null
);

create table if not exists ${BOOK_SCHEMA}.charge (
  sequence          bigint generated always as identity primary key,
  id                text not null unique,
  -- One charge per key, however often the key is sent.
  key               text not null unique,
  method_id         text not null,
  amount_minor      bigint not null check (amount_minor > 0),
  currency          char(3) not null,
  merchant_id       text not null,
  intent_id         text not null,
  subscription_id   text,
  payment_method_id text not null,
  outcome           text not null check (outcome in ('succeeded', 'declined')),
  code              text check ((code is null) = (outcome = 'succeeded')),
  gateway_code      text,
  network_code      text,
  advice            jsonb,
  sent_count        integer not null default 1,
  created_at        bigint not null
);
create index if not exists charge__subscription_id__idx
  on ${BOOK_SCHEMA}.charge (subscription_id, sequence);

create table if not exists ${BOOK_SCHEMA}.refund (
  id           text primary key,
  key          text not null unique,
  charge_id    text not null references ${BOOK_SCHEMA}.charge (id),
  amount_minor bigint not null check (amount_minor > 0),
  status       text not null check (status in ('succeeded', 'pending', 'failed')),
  created_at   bigint not null
);
create index if not exists refund__charge_id__idx on ${BOOK_SCHEMA}.refund (charge_id);

-- Each row declines one future charge.
create table if not exists ${BOOK_SCHEMA}.forced_decline (
  id                bigint generated always as identity primary key,
  subscription_id   text,
  payment_method_id text,
  code              text not null,
  gateway_code      text,
  network_code      text,
  advice            jsonb,
  check (subscription_id is not null or payment_method_id is not null)
);
`;

/**
 * Decides and stores a charge in one transaction. A second request with the key waits on the unique index, and gets
 * the first charge. A forced decline replaces every other code.
 */
const BOOK_CHARGE = `
create or replace function ${BOOK_SCHEMA}.book_charge_once(
  p_id text, p_key text, p_method_id text, p_amount_minor bigint, p_currency text,
  p_merchant_id text, p_intent_id text, p_subscription_id text, p_payment_method_id text,
  p_now bigint, p_opened_at bigint
) returns table (charge ${BOOK_SCHEMA}.charge, is_replay boolean, is_same boolean)
language plpgsql as $function$
#variable_conflict use_column
declare
  booked ${BOOK_SCHEMA}.charge;
  forced ${BOOK_SCHEMA}.forced_decline;
begin
  insert into ${BOOK_SCHEMA}.charge (
    id, key, method_id, amount_minor, currency, merchant_id, intent_id, subscription_id,
    payment_method_id, outcome, code, advice, created_at)
  select p_id, p_key, p_method_id, p_amount_minor, p_currency, p_merchant_id, p_intent_id,
    p_subscription_id, p_payment_method_id,
    case when decision.code is null then 'succeeded' else 'declined' end, decision.code,
    decision.advice, p_now
  from (
    select case when count(*) = 0 then 'payment_method_removed'
      else coalesce(min(charge_code), min(case when p_opened_at >= 1000 * extract(epoch from
        make_date(expiry_year, expiry_month, 1) + interval '1 month') then 'expired_card' end))
      end as code,
      min(charge_advice::text)::jsonb as advice
    from ${BOOK_SCHEMA}.method where id = p_method_id
  ) as decision
  on conflict (key) do nothing
  returning * into booked;

  if not found then
    update ${BOOK_SCHEMA}.charge set sent_count = sent_count + 1 where key = p_key
    returning * into booked;
    return query select booked, true,
      (booked.method_id, booked.amount_minor, booked.currency::text, booked.merchant_id,
       booked.intent_id, booked.subscription_id, booked.payment_method_id)
      is not distinct from
      (p_method_id, p_amount_minor, p_currency, p_merchant_id,
       p_intent_id, p_subscription_id, p_payment_method_id);
    return;
  end if;

  delete from ${BOOK_SCHEMA}.forced_decline where id = (
    select id from ${BOOK_SCHEMA}.forced_decline
    where subscription_id = p_subscription_id or payment_method_id = p_payment_method_id
    order by id limit 1 for update skip locked)
  returning * into forced;
  if found then
    update ${BOOK_SCHEMA}.charge set outcome = 'declined', code = forced.code,
      gateway_code = forced.gateway_code, network_code = forced.network_code,
      advice = forced.advice
    where id = p_id returning * into booked;
  end if;

  return query select booked, false, true;
end
$function$;
`;
