import { describe, expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { idempotencyKeys } from '../../../db/schema/merchants.ts';
import { SUBSCRIPTION_STATUSES } from '../../../domain/subscription/status.ts';
import type { SubscriptionStatus } from '../../../domain/subscription/status.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { subscriptionIn, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { expectError } from '../../support/answers.ts';

/** The behaviour over HTTP that the subscription commands in `COMMANDS` have in common. */

const FAR = Date.UTC(2027, 11, 24, 18);

interface CommandCase {
  rules: string;
  path: string;
  kind: string;
  allowed: SubscriptionStatus[];
  /** The word for the command in the text of a refusal: "cannot be edited". */
  done: string;
  /** The fields of the body besides `subscriptionId`. */
  body: Record<string, unknown>;
  /** The description of the answer to an empty body. */
  required: string;
  /** The body of a successful answer. */
  success: RegExp;
}

/** The body of an answer without fields. */
const EMPTY = /^\{\}$/;

const COMMANDS: CommandCase[] = [
  {
    rules: 'IF-4.6, D-15',
    path: '/subscription/edit',
    kind: 'edit',
    allowed: ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'],
    done: 'edited',
    body: { newAmount: 2_999 },
    required: 'subscriptionId: is required',
    success: EMPTY,
  },
  {
    rules: 'D-§4',
    path: '/subscription/merchant/cancel',
    kind: 'cancel',
    allowed: ['TRIALING', 'ACTIVE', 'PAUSED'],
    done: 'cancelled at the end of its period',
    body: { atPeriodEnd: true },
    required: 'subscriptionId: is required',
    success: EMPTY,
  },
  {
    rules: 'D-§4',
    path: '/subscription/merchant/pause',
    kind: 'pause',
    allowed: ['TRIALING', 'ACTIVE', 'UNPAID'],
    done: 'paused',
    body: {},
    required: 'subscriptionId: is required',
    success: EMPTY,
  },
  {
    rules: 'IF-4.8, D-§4',
    path: '/subscription/merchant/unpause',
    kind: 'unpause',
    allowed: ['PAUSED'],
    done: 'unpaused',
    body: { newNextPaymentDate: FAR },
    required: 'subscriptionId: is required; newNextPaymentDate: is required',
    success: EMPTY,
  },
  {
    rules: 'IF-4.9, D-31',
    path: '/subscription/manual-retry',
    kind: 'manualRetry',
    allowed: ['UNPAID'],
    done: 'retried',
    body: {},
    required: 'subscriptionId: is required',
    success: /^\{"success":true,/,
  },
];

describe.each(COMMANDS)(
  'POST $path',
  ({ rules, path, kind, allowed, done, body, required, success }) => {
    const post = (
      api: ApiEnvironment,
      subscriptionId: unknown,
      key?: string,
      changes: object = {},
    ) =>
      api.call('POST', path, {
        body: { subscriptionId, ...body, ...changes },
        ...(key === undefined ? {} : { key }),
      });

    test.for(allowed)(
      `succeeds while the subscription is %s [${rules}, IF-1, D-16, D-§7]`,
      async (status, { api }) => {
        const { subscriptionId } = await subscriptionIn(api, status);
        const answer = await post(api, subscriptionId);
        expect(answer.status).toBe(200);
        expect(answer.text).toMatch(success);
      },
    );

    const refused = SUBSCRIPTION_STATUSES.filter((status) => !allowed.includes(status));
    test.for(refused)(
      `is refused and changes nothing while the subscription is %s [${rules}, D-§4, IF-3]`,
      async (status, { api }) => {
        const subscription = await subscriptionIn(api, status);
        const before = [await readSubscription(api, subscription), await api.countRows()];
        const answer = await post(api, subscription.subscriptionId);
        expectError(
          answer,
          400,
          'operation_not_allowed',
          `A subscription that is ${status} cannot be ${done}.`,
        );
        expect([await readSubscription(api, subscription), await api.countRows()]).toEqual(before);
      },
    );

    test(`is refused with the names of absent or null fields [${rules}, D-10, D-10a]`, async ({
      api,
    }) => {
      const nulls = Object.fromEntries(Object.keys(body).map((field) => [field, null]));
      for (const sent of [{}, { subscriptionId: null, ...nulls }]) {
        const answer = await api.call('POST', path, { body: sent });
        expectError(answer, 400, 'bad_request', required);
      }
      const answer = await post(api, 7);
      expect(answer.json).toEqual({
        errorCode: 'bad_request',
        errorDescription: 'subscriptionId: must be a string',
      });
    });

    test(`returns the same bytes for a repeated key and sends no second command [${rules}, D-17]`, async ({
      api,
    }) => {
      const { subscriptionId } = await subscriptionIn(api, allowed[0]!);
      const first = await post(api, subscriptionId, `${kind}-twice`);
      const sent = api.workflows.calls.length;
      const second = await post(api, subscriptionId, `${kind}-twice`);
      expect(first.status).toBe(200);
      expect([second.status, second.text]).toEqual([200, first.text]);
      expect(first.headers['idempotent-replayed']).toBeUndefined();
      expect(second.headers['idempotent-replayed']).toBe('true');
      expect(api.workflows.calls).toHaveLength(sent);
    });

    test(`answers 503 without Temporal and keeps the command id for a repeat [${rules}, D-17, D-32]`, async ({
      api,
    }) => {
      const { subscriptionId } = await subscriptionIn(api, allowed[0]!);
      const key = `${kind}-away`;
      const before = api.workflows.calls.length;
      api.workflows.faults.isDown = true;
      const away = await post(api, subscriptionId, key);
      api.workflows.faults.isDown = false;
      const back = await post(api, subscriptionId, key);
      expect(away.status).toBe(503);
      expect(away.json).toMatchObject({ errorCode: 'service_unavailable' });
      expect(back.status).toBe(200);
      const [row] = await api.db.select().from(idempotencyKeys).where(eq(idempotencyKeys.key, key));
      const name = `execute ${kind} ${row!.commandId}`;
      expect(api.workflows.calls.slice(before).map((call) => call.name)).toEqual([name, name]);
    });
  },
);
