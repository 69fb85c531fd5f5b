import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { subscriptionBody } from './api-world.ts';
import type { Answer, ApiWorld, CallOptions } from './api-world.ts';

interface Checkout {
  subscriptionId: string;
  path: string;
}

export const JAN_31 = Date.UTC(2026, 0, 31, 12);

/** The actions of a merchant and its payers on checkouts. */
export function checkoutsIn(world: () => ApiWorld) {
  /** Creates a checkout on a test clock at noon of 31 January 2026. */
  async function open(
    changes: Record<string, unknown> = {},
  ): Promise<Checkout & { clock: string }> {
    const made = await world().call('POST', '/test-clock/create', { body: { now: JAN_31 } });
    const { testClockId: clock } = made.json as { testClockId: string };
    const answer = await world().call('POST', '/subscription/create', {
      body: subscriptionBody({ testClockId: clock, ...changes }),
    });
    const { subscriptionId, fwdUrl } = answer.json as Record<string, string>;
    return { subscriptionId: subscriptionId!, path: new URL(fwdUrl!).pathname, clock };
  }

  const browse = (path: string, options: CallOptions = {}, method = 'GET') =>
    world().call(method, path, { as: null, ...options });
  const comeBack = (path: string, query: string) => browse(`${path}/return?${query}`);
  const postForm = (path: string, fields: Record<string, string>, headers = {}) =>
    browse(
      path,
      {
        raw: new URLSearchParams(fields).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      },
      'POST',
    );

  async function statusOf(subscriptionId: string): Promise<unknown> {
    const answer = await world().call('GET', `/subscription/get-subscription/${subscriptionId}`);
    return (answer.json as { status: string }).status;
  }

  async function eventTypes(subscriptionId: string): Promise<string[]> {
    const rows = await world()
      .db.select({ type: outboxEvents.type })
      .from(outboxEvents)
      .where(eq(outboxEvents.streamId, subscriptionId))
      .orderBy(outboxEvents.sequence);
    return rows.map(({ type }) => type);
  }

  async function sessionOf(subscriptionId: string) {
    const [row] = await world()
      .db.select()
      .from(checkoutSessions)
      .where(eq(checkoutSessions.subscriptionId, subscriptionId));
    return row!;
  }

  return { open, browse, comeBack, postForm, statusOf, eventTypes, sessionOf };
}

export function expectSeeOther(answer: Answer, path: string): void {
  expect([answer.status, answer.headers['location']]).toEqual([303, path]);
}
