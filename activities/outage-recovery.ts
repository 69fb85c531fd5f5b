import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import {
  dueForRecheck,
  lastAnsweredAt,
  longestUnasked,
  recordHealth,
  recordRecheck,
  recordSilence,
  unansweredGateways,
} from '../db/repositories/sweeps/unanswered.ts';
import type { Unanswered, UnansweredGateway } from '../db/repositories/sweeps/unanswered.ts';
import type { Db } from '../db/client.ts';
import type { LookupOutcome, MethodLookup, PaymentGateway } from '../gateways/port.ts';
import { UnknownGateway } from '../gateways/registry.ts';
import type { GatewayRegistry } from '../gateways/registry.ts';
import type { Orders } from '../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../temporal/subscription-workflows.ts';
import { chargeRefOf } from './charge-exchange.ts';
import { unlessRejected } from './gateway-exchange.ts';

export interface OutageRecoveryDeps {
  db: Db;
  gateways: GatewayRegistry;
  subscriptionWorkflows: Pick<SubscriptionWorkflows, 'recheck'>;
  orders: Pick<Orders, 'recheck'>;
  /** Waits between two rechecks. Default: a timer. */
  recheckPause?: (ms: number) => Promise<void>;
}

/** Maximum number of gateways that are tested at once. One test waits up to 5 s for its gateway. */
const TESTS_AT_ONCE = 100;
/** Time in ms after the start of the call within which the test of a gateway may begin. */
const TESTS_FOR_MS = 10_000;
const NOT_TESTED: GatewayTest = { answeredAt: null, failed: 0 };

/** Maximum number of rechecks in one call, for all gateways together. The next call continues. */
const RECHECKS_MAX = 200;
/** Pause between two rechecks, in ms: at most 20 a second. */
const PAUSE_MS = 50;
/**
 * Time in ms after the start of the call within which a recheck may begin. The time limit of the activity that makes
 * the call is 60 s.
 */
const RECHECKS_FOR_MS = 20_000;

/**
 * Detects that a gateway answers again after an outage, and then rechecks the outcomes that the outage left
 * unknown: their workflows look them up at once. During the outage each call sends each gateway one look-up: of the
 * charge, or of the charge to refund, whose last unanswered request is the oldest. An account of two merchants gets one
 * look-up with the key of each. If the charge was never prepared, the look-up is that of the charge's payment method. A gateway that rejects the look-up as invalid counts as one that does
 * not answer. While hundreds of accounts do not answer, one call tests some of them.
 *
 * The progress is stored in rows, so a later call continues after a crash, and a repeat is safe. Rechecks
 * charges and refunds in the order in which they were sent. One call makes at most 200 rechecks for all
 * gateways together, at most 20 in a second. `nowAt` is real time. Throws if the database does not answer.
 * Counts an account that cannot be opened as failed.
 */
export async function recheckAfterOutage(
  deps: OutageRecoveryDeps,
  nowAt: number,
): Promise<{ rechecked: number; failed: number }> {
  const startedAt = performance.now();
  const stopAt = startedAt + RECHECKS_FOR_MS;
  const unanswered = await unansweredGateways(deps.db);
  // At once, because a gateway that hangs takes 5 s, which the rechecks at the other gateways would lack.
  const queue = new PQueue({ concurrency: TESTS_AT_ONCE });
  const tests = await queue.addAll(
    unanswered.map((one) => async () => {
      const isLate = performance.now() > startedAt + TESTS_FOR_MS;
      const test = isLate ? NOT_TESTED : await testGateway(deps, one, nowAt);
      return { gateway: one.gateway, ...test };
    }),
  );
  const done = { rechecked: 0, failed: 0 };
  for (const { gateway, answeredAt } of tests) {
    if (answeredAt !== null) await recheckDue(deps, { gateway, answeredAt, nowAt, stopAt }, done);
  }
  const failedTests = tests.reduce((sum, { failed }) => sum + failed, 0);
  return { ...done, failed: done.failed + failedTests };
}

/**
 * Rechecks the outcomes that were unknown when the gateway answered, until `stopAt` (`performance.now()`) or until
 * `done`, which counts the rechecks, has reached the maximum.
 */
async function recheckDue(
  deps: OutageRecoveryDeps,
  {
    gateway,
    answeredAt,
    nowAt,
    stopAt,
  }: { gateway: string; answeredAt: number; nowAt: number; stopAt: number },
  done: { rechecked: number; failed: number },
): Promise<void> {
  const { db, recheckPause = sleep } = deps;
  const limit = RECHECKS_MAX - done.rechecked - done.failed;
  for (const subject of await dueForRecheck(db, gateway, { answeredAt, nowAt, limit })) {
    if (done.rechecked + done.failed > 0) await recheckPause(PAUSE_MS);
    if (performance.now() > stopAt) return;
    try {
      await recheck(deps, subject);
      await recordRecheck(db, subject, nowAt);
      done.rechecked += 1;
    } catch {
      // A failed recheck does not block the others. It stays due, so the next call repeats it.
      done.failed += 1;
    }
  }
}

/** The result of a test of one gateway. */
interface GatewayTest {
  /** Real time at which the gateway last answered a look-up of this module; null if it does not answer. */
  answeredAt: number | null;
  /** Number of merchants whose account at the gateway could not be opened, or whose look-up threw. */
  failed: number;
}

/**
 * Returns when the gateway last answered a look-up of this module. If a request was left unanswered after that time,
 * first tests the gateway: with one look-up, or, if the account belongs to two merchants, with one by the key of each.
 * The gateway answers if one look-up is answered. Sends nothing to a gateway that this process does not have.
 */
async function testGateway(
  deps: OutageRecoveryDeps,
  { gateway: name, unansweredAt }: UnansweredGateway,
  nowAt: number,
): Promise<GatewayTest> {
  const { db } = deps;
  const answeredAt = await lastAnsweredAt(db, name);
  if (answeredAt !== null && unansweredAt <= answeredAt) return { answeredAt, failed: 0 };
  const { lookups, failed } = await lookupsAt(deps, name);
  if (lookups.length === 0) return { answeredAt: null, failed };
  const results = await Promise.allSettled(
    lookups.map(({ gateway, subject }) => answers(gateway, subject)),
  );
  const isAnswered = results.some((one) => one.status === 'fulfilled' && one.value);
  await recordHealth(db, name, { isAnswered, nowAt });
  if (!isAnswered) {
    for (const { subject } of lookups) await recordSilence(db, subject, nowAt);
  }
  const thrown = results.filter(({ status }) => status === 'rejected').length;
  return { answeredAt: isAnswered ? nowAt : null, failed: failed + thrown };
}

/**
 * Opens the gateway for the merchants of the longest unasked rows. These are all merchants of an account, because an
 * account belongs to at most one merchant in each mode. The sandbox is one gateway for all merchants, so it gets one
 * look-up however many merchants there are.
 */
async function lookupsAt({ db, gateways }: OutageRecoveryDeps, name: string) {
  const lookups: { gateway: PaymentGateway; subject: Unanswered }[] = [];
  let failed = 0;
  for (const subject of await longestUnasked(db, name)) {
    try {
      const gateway = await gateways.of(subject.merchantId, name);
      const isNew = lookups.every((other) => other.gateway !== gateway);
      if (isNew) lookups.push({ gateway, subject });
    } catch (error) {
      // For example, the secret of the merchant's account cannot be decrypted.
      if (!(error instanceof UnknownGateway)) failed += 1;
    }
  }
  return { lookups, failed };
}

async function answers(gateway: PaymentGateway, subject: Unanswered): Promise<boolean> {
  const found = await unlessRejected<LookupOutcome | MethodLookup>(() =>
    sendsLookup(gateway, subject)
      ? gateway.lookup(chargeRefOf(subject))
      : gateway.lookupMethod(subject.gatewayMethodId),
  );
  return found.kind !== 'unknown' && found.kind !== 'rejected';
}

/**
 * True if a look-up of the charge sends a request. A charge that was never prepared is absent at a gateway that prepares
 * charges, so its look-up sends nothing and shows nothing about the gateway.
 */
function sendsLookup({ prepare }: PaymentGateway, { gatewayChargeId }: Unanswered): boolean {
  return prepare === null || gatewayChargeId !== null;
}

function recheck(
  { subscriptionWorkflows, orders }: OutageRecoveryDeps,
  { table, merchantId, id, intentId, subscriptionId }: Unanswered,
): Promise<void> {
  if (table === 'refund') return orders.recheck('refund', { merchantId, refundId: id });
  return subscriptionId === null
    ? orders.recheck('payment', { merchantId, intentId, token: null })
    : subscriptionWorkflows.recheck({ merchantId, subscriptionId });
}
