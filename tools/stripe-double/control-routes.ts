import type { JSONValue, Sql } from 'postgres';
import {
  object,
  oneOf,
  optionalText,
  text,
  wholeNumber,
  wrong,
} from '../../gateways/http-server/fields.ts';
import type { Fields } from '../../gateways/http-server/fields.ts';
import { RequestRefused } from '../../gateways/http-server/http.ts';
import type { Route } from '../../gateways/http-server/http.ts';
import { controlRoute } from '../fault-proxy/control-key.ts';
import { replaceKey, saveAccount } from './accounts.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import type { Kind } from './kinds.ts';
import { settleRefund } from './charge-endpoints.ts';
import { declineCharge, succeed } from './charging.ts';
import type { Decline } from './cards.ts';
import { listCharges } from './charge-list.ts';
import type { StripeObject } from './errors.ts';
import { EVENT_ACTIONS } from './events.ts';
import type { Events } from './events.ts';
import type { Holds } from './holds.ts';
import type { Scope } from './scope.ts';
import { dispute, fraudWarning } from './shapes.ts';

const COUNT = { from: 1, to: 1_000_000 };
const ADVICE = ['confirm_card_data', 'do_not_try_again', 'try_again_later'] as const;

export interface ControlOptions {
  readonly sql: Sql;
  readonly events: Events;
  readonly holds: Holds;
  readonly nowMs: () => number;
  /** Runs `work` in a transaction on the account that has the object `id`. Then sends the events that it emitted. */
  readonly onObject: <T>(id: string, work: (scope: Scope) => Promise<T>) => Promise<T>;
}

/** Routes that make the double act as the payer's bank, the card network or Stripe itself. */
export function controlRoutes(options: ControlOptions): Route[] {
  return [...accountRoutes(options), ...outcomeRoutes(options), ...faultRoutes(options)];
}

function accountRoutes({ sql, nowMs }: ControlOptions): Route[] {
  return [
    controlRoute('POST', 'accounts/key', (fields) =>
      replaceKey(sql, text(fields, 'accountId'), testKey(fields)),
    ),
    controlRoute('POST', 'accounts', async (fields) => {
      const account = {
        secretKey: testKey(fields),
        webhookUrl: optionalText(fields, 'webhookUrl'),
        webhookSecret: optionalText(fields, 'webhookSecret'),
      };
      if (account.webhookUrl !== null && !account.webhookSecret?.startsWith('whsec_')) {
        throw wrong('webhookSecret', 'a secret (whsec_…)');
      }
      return { accountId: await saveAccount(sql, account, Math.floor(nowMs() / 1_000)) };
    }),
    controlRoute('GET', 'charges', (_fields, url) =>
      listCharges(sql, Object.fromEntries(url.searchParams)),
    ),
  ];
}

function testKey(fields: Fields): string {
  const secretKey = text(fields, 'secretKey');
  if (!/^[sr]k_test_/.test(secretKey)) throw wrong('secretKey', 'a test key (sk_test_…)');
  return secretKey;
}

function outcomeRoutes({ sql, onObject }: ControlOptions): Route[] {
  return [
    controlRoute('POST', 'outcomes', async (fields) => {
      const match = {
        accountId: optionalText(fields, 'accountId'),
        paymentMethodId: optionalText(fields, 'paymentMethodId'),
        metadata: object(fields, 'metadata'),
      };
      if (match.paymentMethodId === null && Object.keys(match.metadata).length === 0) {
        throw wrong('paymentMethodId or metadata', 'given');
      }
      const kind = oneOf(fields, 'kind', ['decline', 'processing', 'authentication'] as const);
      const outcome = kind === 'decline' ? { kind, ...readDecline(fields) } : { kind };
      await sql`
        insert into stripe_double.forced_outcome (match, outcome, times_left)
        values (${sql.json(match as JSONValue)}, ${sql.json(outcome)},
          ${wholeNumber(fields, 'count', COUNT)})`;
    }),
    controlRoute('POST', 'settle', (fields) => {
      const id = text(fields, 'paymentIntentId');
      const why = fields['code'] === undefined ? null : readDecline(fields);
      return onObject(id, async (scope) => {
        const intent = await waiting(scope, 'payment_intent', id, 'processing');
        const method = await scope.book.get(
          'payment_method',
          String(intent.body['payment_method']),
        );
        const pending = await scope.book.lock('charge', String(intent.body['latest_charge']));
        const settled =
          why === null
            ? await succeed(scope, { intent, method }, pending)
            : await declineCharge(scope, { intent, method }, why, pending);
        return { status: settled.status };
      });
    }),
    controlRoute('POST', 'disputes', (fields) => openDispute(fields, onObject)),
    controlRoute('POST', 'disputes/close', (fields) => {
      const id = text(fields, 'disputeId');
      const status = oneOf(fields, 'status', ['won', 'lost'] as const);
      return onObject(id, async (scope) => {
        const open = await waiting(scope, 'dispute', id, 'needs_response');
        const closed = await scope.book.update(open, { status });
        scope.emit('charge.dispute.closed', closed.body);
      });
    }),
    controlRoute('POST', 'fraud-warnings', (fields) => {
      const charge = text(fields, 'chargeId');
      return onObject(charge, async (scope) => {
        const { body } = await waiting(scope, 'charge', charge, 'succeeded');
        const facts = { charge, payment_intent: body['payment_intent'] };
        const warning = fraudWarning(newId('issfr'), scope.now, facts);
        const { id } = await scope.book.insert('radar.early_fraud_warning', warning);
        scope.emit('radar.early_fraud_warning.created', warning);
        return { warningId: id };
      });
    }),
    controlRoute('POST', 'cards', (fields) => updateCard(fields, onObject)),
    controlRoute('POST', 'refunds/pending', (fields) => {
      const id = text(fields, 'chargeId');
      return onObject(id, async ({ book }) => {
        await book.update(await book.lock('charge', id), {}, { pendingRefunds: true });
      });
    }),
    controlRoute('POST', 'refunds/settle', (fields) => {
      const chargeId = optionalText(fields, 'chargeId');
      const failure = optionalText(fields, 'failure');
      return onObject(chargeId ?? text(fields, 'refundId'), async (scope) => {
        const id = chargeId === null ? text(fields, 'refundId') : await lastRefund(scope, chargeId);
        // At Stripe a refund that succeeded may fail later.
        await waiting(scope, 'refund', id, 'pending', ...(failure === null ? [] : ['succeeded']));
        await settleRefund(scope, id, failure);
      });
    }),
  ];
}

function faultRoutes({ events, holds }: ControlOptions): Route[] {
  return [
    controlRoute('POST', 'events', (fields) =>
      events.addRule({
        action: oneOf(fields, 'action', EVENT_ACTIONS),
        type: optionalText(fields, 'type'),
        count: wholeNumber(fields, 'count', COUNT),
      }),
    ),
    controlRoute('POST', 'events/release', () => events.release()),
    controlRoute('POST', 'holds', (fields) =>
      holds.add(text(fields, 'path'), wholeNumber(fields, 'count', COUNT)),
    ),
    controlRoute('GET', 'holds', () => ({ held: holds.held() })),
    controlRoute('POST', 'holds/release', (fields) =>
      holds.release(
        fields['count'] === undefined ? undefined : wholeNumber(fields, 'count', COUNT),
      ),
    ),
  ];
}

function openDispute(fields: Fields, onObject: ControlOptions['onObject']): Promise<StripeObject> {
  const id = text(fields, 'chargeId');
  const reason = optionalText(fields, 'reason') ?? 'fraudulent';
  return onObject(id, async (scope) => {
    const charge = await waiting(scope, 'charge', id, 'succeeded');
    await scope.book.update(charge, { disputed: true });
    const opened = await scope.book.insert(
      'dispute',
      dispute(newId('du'), scope.now, {
        amount: charge.body['amount'],
        currency: charge.body['currency'],
        charge: id,
        payment_intent: charge.body['payment_intent'],
        reason,
      }),
    );
    scope.emit('charge.dispute.created', opened.body);
    return { disputeId: opened.id };
  });
}

/** As the card network does. The card's behaviour does not change. */
function updateCard(fields: Fields, onObject: ControlOptions['onObject']): Promise<void> {
  const id = text(fields, 'paymentMethodId');
  return onObject(id, async (scope) => {
    const method = await scope.book.lock('payment_method', id);
    const card = {
      ...(method.body['card'] as StripeObject),
      last4: text(fields, 'lastFour'),
      exp_month: wholeNumber(fields, 'expiryMonth', { from: 1, to: 12 }),
      exp_year: wholeNumber(fields, 'expiryYear', { from: 2_000, to: 2_099 }),
    };
    const updated = await scope.book.update(method, { card });
    scope.emit('payment_method.automatically_updated', updated.body);
  });
}

async function lastRefund({ book }: Scope, chargeId: string): Promise<string> {
  const refund = (await book.where('refund', 'charge', chargeId)).at(-1);
  if (refund !== undefined) return refund.id;
  throw new RequestRefused(409, 'status_wrong', `${chargeId} has no refund.`);
}

/** Locks an object and returns it. Refuses with 409 an object whose status is none of `statuses`. */
async function waiting(
  scope: Scope,
  kind: Kind,
  id: string,
  ...statuses: string[]
): Promise<Stored> {
  const found = await scope.book.lock(kind, id);
  const current = String(found.body['status']);
  if (statuses.includes(current)) return found;
  throw new RequestRefused(
    409,
    'status_wrong',
    `${id} is ${current}, not ${statuses.join(' or ')}.`,
  );
}

function readDecline(fields: Fields): Decline {
  const advice = fields['adviceCode'];
  return {
    code: text(fields, 'code'),
    declineCode: optionalText(fields, 'declineCode'),
    adviceCode:
      advice === undefined || advice === null ? null : oneOf(fields, 'adviceCode', ADVICE),
    networkAdviceCode: optionalText(fields, 'networkAdviceCode'),
    networkDeclineCode: optionalText(fields, 'networkDeclineCode'),
    isBlocked: fields['isBlocked'] === true,
  };
}
