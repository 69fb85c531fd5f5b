import postgres from 'postgres';
import type { Sql } from 'postgres';

/** Key of the advisory lock. The number is arbitrary. */
const ADVISORY_LOCK = 7_312_026_112;

const STATEMENT_TIMEOUT_MS = 10_000;

/** After this wait, in ms, for another request on the object the double answers `lock_timeout`. */
const LOCK_TIMEOUT_MS = 5_000;

/** Creates missing tables. One double at a time: it deletes the keys of unfinished requests. */
export async function openBook(databaseUrl: string): Promise<Sql> {
  const sql = postgres(databaseUrl, {
    // One process on one core cannot use more connections.
    max: 8,
    connect_timeout: 10,
    fetch_types: false,
    onnotice: () => undefined,
    connection: {
      application_name: 'stripe-double',
      statement_timeout: STATEMENT_TIMEOUT_MS,
      lock_timeout: LOCK_TIMEOUT_MS,
    },
  });
  try {
    await sql.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(${ADVISORY_LOCK})`;
      await tx.unsafe(TABLES);
      await tx`delete from stripe_double.idempotency where status is null`;
    });
  } catch (error) {
    await sql.end({ timeout: 1 });
    throw error;
  }
  return sql;
}

/** Only published test numbers, no CVC, and the SHA-256 of a secret key. */
const TABLES = `
create schema if not exists stripe_double;

create table if not exists stripe_double.account (
  id             text primary key,
  key_hash       text not null unique,
  webhook_url    text,
  webhook_secret text,
  created        bigint not null
);

-- Every Stripe object: its body as Stripe sends it, and hidden data that only the double reads.
create table if not exists stripe_double.object (
  sequence   bigint generated always as identity primary key,
  id         text not null unique,
  account_id text not null,
  kind       text not null,
  created    bigint not null,
  body       jsonb not null,
  hidden     jsonb not null
);
create index if not exists object__account_id__kind__sequence__idx
  on stripe_double.object (account_id, kind, sequence);
create index if not exists object__expires_at__idx
  on stripe_double.object (((body->>'expires_at')::bigint))
  where kind = 'checkout.session' and body->>'status' = 'open';
create index if not exists object__payment_intent__idx
  on stripe_double.object ((body->>'payment_intent'));
create index if not exists object__charge__idx on stripe_double.object ((body->>'charge'));

-- A row without a status is a request in progress.
create table if not exists stripe_double.idempotency (
  account_id  text not null,
  key         text not null,
  fingerprint text not null,
  request_id  text not null,
  status      integer,
  body        text,
  created_ms  bigint not null,
  primary key (account_id, key)
);

-- Number of requests to confirm a PaymentIntent, with repeats of a key.
create table if not exists stripe_double.confirm_request (
  intent_id text primary key,
  count     integer not null
);

create table if not exists stripe_double.forced_outcome (
  id           bigint generated always as identity primary key,
  match        jsonb not null,
  outcome      jsonb not null,
  times_left   integer not null
);

create table if not exists stripe_double.event_delivery (
  sequence    bigint generated always as identity primary key,
  event_id    text not null,
  account_id  text not null,
  raw_body    text not null,
  state       text not null check (state in ('pending', 'held', 'delivered', 'dropped')),
  attempts    integer not null default 0,
  next_ms     bigint not null
);
create index if not exists event_delivery__state__next_ms__idx
  on stripe_double.event_delivery (state, next_ms);
`;
