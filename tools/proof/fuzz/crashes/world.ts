import { randomBytes, randomUUID } from 'node:crypto';
import postgres from 'postgres';
import {
  createChargingActivities,
  createTransitionActivities,
} from '../../../../activities/subscription.ts';
import { withoutQueryData } from '../../../../activities/failures.ts';
import { createLateChargeActivities } from '../../../../activities/orders/late-charges.ts';
import { createRefundActivities } from '../../../../activities/orders/refunds.ts';
import type { ActivityDeps } from '../../../../activities/deps.ts';
import { createDb } from '../../../../db/client.ts';
import type { Db } from '../../../../db/client.ts';
import { changeGateway } from '../../../../db/repositories/merchants/gateways.ts';
import { merchants } from '../../../../db/schema/merchants.ts';
import type { MerchantSettings } from '../../../../db/schema/merchants.ts';
import { NOTICE_TYPES } from '../../../../domain/events.ts';
import { newId } from '../../../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../../../domain/retry-plan.ts';
import { RenewalPlaces } from '../../../../domain/subscription/renewal-places.ts';
import { accountBinding } from '../../../../gateways/merchant-gateways.ts';
import type { PaymentGateway } from '../../../../gateways/port.ts';
import { createSealing } from '../../../../runtime/sealing.ts';
import type { Sealing } from '../../../../runtime/sealing.ts';
import { openBooks } from '../../../../cli/verify/books.ts';
import type { Places } from '../../../../cli/verify/books.ts';
import { checkBooks } from '../../../../cli/verify/invariants.ts';
import { openActivityDb, ownerOfCall, unreliable } from './activity-call.ts';
import { bundleWorkflow } from './execution.ts';
import { KEY, openSandbox, openStripe, RETURN_ORIGIN } from './gateways.ts';
import type { GatewayPlaces } from './gateways.ts';
import type { GatewayChoice } from '../../../../cli/command-line/options.ts';

export interface WorldOptions extends GatewayPlaces {
  readonly gateway: GatewayChoice;
  readonly livesAtOnce: number;
}

const HOUR_MS = 3_600_000;
/** One merchant for each. */
const SETTINGS: readonly MerchantSettings[] = [
  {
    retryPlan: DEFAULT_RETRY_PLAN,
    // Short cycles have notices, too.
    notices: NOTICE_TYPES.map((notice) => ({ notice, cycleDays: 0, daysBefore: [3, 1] })),
    chargeWithoutNotice: false,
  },
  {
    retryPlan: { delaysMs: [HOUR_MS, 30 * HOUR_MS], afterExhausted: 'end' },
    cardLimits: { perDay: 1, per30Days: 2 },
  },
  {
    retryPlan: {
      delaysMs: [2 * HOUR_MS, 5 * HOUR_MS],
      afterExhausted: 'stay_unpaid',
      unpaidFrom: 'retries_exhausted',
    },
    cardLimits: { perDay: 1, per30Days: 15 },
  },
];
export const MERCHANTS = SETTINGS.length;

export type World = Awaited<ReturnType<typeof openWorld>>;

/** A database with the gateway's book, the real activities on unreliable connections, and the real workflow code. */
export async function openWorld(options: WorldOptions) {
  const { databaseUrl, livesAtOnce } = options;
  const admin = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
  const own = createDb({ url: databaseUrl, poolSize: livesAtOnce, applicationName: 'fuzz' });
  const unsteady = openActivityDb(databaseUrl, 4 * livesAtOnce);
  const sealing = createSealing([randomBytes(32)]);
  const server = await (options.gateway === 'sandbox' ? openSandbox : openStripe)(options);
  const places = { databaseUrl, gateway: null, receiverBook: null, clientBook: null };
  const gateways = new Map<string, PaymentGateway>();
  const gatewayOf = (merchantId: string): PaymentGateway => {
    const gateway = gateways.get(merchantId);
    if (!gateway) throw new Error(`no gateway of ${merchantId}`);
    return gateway;
  };
  const registry = {
    of: async (merchantId: string) => unreliable(gatewayOf(merchantId)),
    forNewMethods: async (merchantId: string) => unreliable(gatewayOf(merchantId)),
  };

  const activities = activitiesOn(unsteady.db, registry);

  return {
    code: await bundleWorkflow(),
    db: own.db,
    sql: admin,
    /** Runs an activity by its name, as a worker does. */
    call: (name: string, input: unknown): Promise<unknown> => {
      const activity = activities[name as keyof typeof activities];
      return (activity as (given: unknown) => Promise<unknown>)(input);
    },
    gatewayOf,
    /** Empties the database, and makes merchants with new accounts. Returns their ids. */
    begin: async (): Promise<string[]> => {
      await empty(admin);
      gateways.clear();
      for (const settings of SETTINGS) {
        const { gateway, secretKey } = await server.account();
        const merchantId = await newMerchant(own.db, sealing, settings, { gateway, secretKey });
        gateways.set(merchantId, gateway);
      }
      return [...gateways.keys()];
    },
    /** The paid attempts, and those that waited because of the limits of their card. */
    counts: async () => {
      const [row] = await admin<{ paid: number; limited: number; notices: number }[]>`
        select (select count(*)::int from payment_attempt where state = 'SUCCEEDED') as paid,
          (select count(*)::int from subscription_entry where kind = 'limited') as limited,
          (select count(*)::int from subscription_entry where kind = 'notice_given') as notices`;
      return row ?? { paid: 0, limited: 0, notices: 0 };
    },
    enterCard: server.enterCard,
    declineNext: server.declineNext,
    cards: server.cards,
    /** Returns the violations that the books and the rows show. */
    problems: () =>
      problemsIn(
        server.isSandbox
          ? { ...places, gateway: { url: server.url, key: KEY } }
          : { ...places, accounts: { sealing, doubleUrls: { stripe: server.url }, days: 2 } },
      ),
    close: async () => {
      await server.close();
      await Promise.all([unsteady.close(), own.close(), admin.end()]);
    },
  };
}

async function empty(sql: postgres.Sql): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname in ('public', 'sandbox_gateway') and tablename not like '%migration%'`;
  await sql.unsafe(`truncate ${tables.map(({ name }) => name).join(', ')} cascade`);
}

async function newMerchant(
  db: Db,
  sealing: Sealing,
  settings: MerchantSettings,
  { gateway: { name }, secretKey }: { gateway: PaymentGateway; secretKey: string | null },
): Promise<string> {
  const [nowAt, mode] = [Date.now(), 'test' as const];
  const merchantId = newId('mer', nowAt, randomBytes);
  const merchant = {
    id: merchantId,
    name: 'Fuzz',
    mode,
    settings,
    createdAt: nowAt,
  };
  await db.insert(merchants).values(merchant);
  if (secretKey === null) return merchantId;
  const sealed = sealing.seal(secretKey, accountBinding(merchantId, name));
  const key = { sealed, ending: secretKey.slice(-4) };
  const account = { merchantId, name, mode, key, sealedWebhookSecret: null, nowAt };
  await changeGateway(db, { ...account, makeCurrent: true });
  return merchantId;
}

async function problemsIn(places: Places): Promise<string[]> {
  const books = await openBooks(places);
  try {
    const results = await checkBooks(books);
    const found = await books.ask<{ wrong: string }>(UNSETTLED);
    return [
      ...books.unread.values(),
      ...results.flatMap(({ wrong, forPerson }) => [...wrong, ...forPerson]),
      ...found.map(({ wrong }) => wrong),
    ];
  } finally {
    await books.close();
  }
}

/** After all is settled, more must be true than of a running system. */
const UNSETTLED = `
  select format('the gateway charged %s, but no attempt requested it', b.key) as wrong
  from book_charge b where not exists (select from payment_attempt a where a.gateway_key = b.key)
  union all
  select format('attempt %s is %s', gateway_key, state) from payment_attempt
  where state not in ('SUCCEEDED', 'DECLINED')
  union all
  select format('%s: the command %s %s has no result', subscription_id, kind, command_id)
  from subscription_command where result is null
  union all
  select format('%s has the payment method %s, and its payer gave %s last', s.id,
    s.state->>'paymentMethodId', given.id)
  from subscription s cross join lateral (
    select m.id from subscription_command c
    join payment_method m on m.merchant_id = c.merchant_id
      and m.token_hash = sha256(convert_to(c.command_id, 'UTF8'))
    where c.merchant_id = s.merchant_id and c.subscription_id = s.id
      and (c.kind = 'replacePaymentMethod' or c.result->>'outcome' <> 'declined')
    order by c.accepted_at desc limit 1) given
  where given.id is distinct from s.state->>'paymentMethodId'`;

function activitiesOn(db: ActivityDeps['db'], gateways: ActivityDeps['gateways']) {
  const order = async (kind: string, order: object) => ownerOfCall()?.order(kind, order);
  const deps = {
    db,
    gateways,
    links: { publicUrl: RETURN_ORIGIN, sessionKey: randomUUID() + randomUUID() },
    places: new RenewalPlaces(1_000_000),
    // A life repeats a request at a later time of its own.
    sendBudget: { newSendsForMs: 0, pauseMs: 1 },
    orders: { ensureRunning: order } as unknown as ActivityDeps['orders'],
    subscriptionWorkflows: {
      recheck: async () => ownerOfCall()?.recheck(),
    } as unknown as ActivityDeps['subscriptionWorkflows'],
    wakeStream: async () => ownerOfCall()?.wakeStream(),
    endPayerPriority: () => undefined,
  };
  return withoutQueryData({
    ...createChargingActivities(deps),
    ...createTransitionActivities(deps),
    ...createLateChargeActivities(deps),
    ...createRefundActivities(deps),
  });
}
