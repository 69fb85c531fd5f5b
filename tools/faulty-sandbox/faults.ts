import { setTimeout as sleep } from 'node:timers/promises';
import { object, oneOf, wholeNumber } from '../../gateways/http-server/fields.ts';
import type { Fields } from '../../gateways/http-server/fields.ts';
import { json, LOST } from '../../gateways/http-server/http.ts';
import type { GatewayAnswer, Reply } from '../../gateways/http-server/http.ts';
import { readAdvice } from '../../gateways/sandbox/advice.ts';
import type { BookSql } from '../../gateways/sandbox/book-schema.ts';
import type { ChargeBook } from '../../gateways/sandbox/charge-book.ts';
import { readTarget } from '../../gateways/sandbox/control-routes.ts';
import type { Serve } from '../../gateways/sandbox/payment-routes.ts';
import { createArmed } from '../fault-proxy/armed.ts';
import { COUNT_LIMIT, DELAY_LIMIT_MS, EFFECTS, isHit, share } from '../fault-proxy/faults.ts';

const OPERATIONS: Request['operation'][] = [
  'charge',
  'lookup',
  'methods',
  'refund',
  'refund_lookup',
];

/**
 * `decline`: only for `charge`. `delay`: served after `delayMs`. `error_401`: our key is refused. `lose_answer`: the server
 * closes the connection. `pending`: the refund is decided later.
 */
const FAULTS = ['decline', 'delay', 'error_401', 'error_500', 'lose_answer', 'pending'] as const;

export const REFUND_STATUSES = ['succeeded', 'pending', 'failed'] as const;

type Request = Parameters<Serve>[0];
type Target = Omit<Request, 'operation' | 'key'>;

type Fault = Readonly<ReturnType<typeof readFault>>;

/**
 * A restart clears the faults. If `closing` aborts, delayed requests fail.
 */
export function createFaults(
  closing: AbortSignal,
  { sql, charges }: { sql: BookSql; charges: ChargeBook },
) {
  const armed = createArmed<Fault>();
  let release = new AbortController();

  const decide = (key: string, status: (typeof REFUND_STATUSES)[number]) =>
    sql`update sandbox_gateway.refund set status = ${status} where key = ${key}`;

  const decline = ({ subscriptionId, paymentMethodId }: Target, { advice }: Fault) =>
    charges.forceDeclines({
      subscriptionId,
      paymentMethodId: subscriptionId === null ? paymentMethodId : null,
      code: 'insufficient_funds',
      advice,
      count: 1,
    });

  const delay = async (delayMs: number): Promise<void> => {
    const { signal: released } = release;
    const signal = AbortSignal.any([closing, released]);
    await sleep(delayMs, undefined, { signal }).catch((error: unknown) => {
      if (!released.aborted) throw error;
    });
  };

  /** A new refund is booked as succeeded and made pending before its answer, which the repeat gives. */
  const leavePending = async (key: string, work: () => Promise<GatewayAnswer>) => {
    const answer = await work();
    if ('idempotent-replayed' in answer.headers) return answer;
    await decide(key, 'pending');
    return work();
  };

  const serve: Serve = async (request, work): Promise<Reply> => {
    const { operation, key } = request;
    const ids = operation === 'lookup' ? await idsOf(sql, key) : {};
    const fault = armed.take((each) => matches(each, { ...request, ...ids }) && isHit(each));
    const kind = fault?.fault;
    if (kind === 'error_500' || kind === 'lose_answer') {
      if (fault?.effect === 'done') await work();
      return kind === 'lose_answer' ? LOST : json(500, { error: 'fault_asked_for' });
    }
    if (kind === 'error_401') return json(401, { error: 'key_unknown' });
    if (kind === 'pending' && operation === 'refund') return leavePending(key, work);
    if (fault?.fault === 'decline' && operation === 'charge') await decline(request, fault);
    if (kind === 'delay') await delay(fault?.delayMs ?? 0);
    return work();
  };

  return {
    serve,
    decide,
    add: armed.add,
    list: armed.list,
    /** A request that a `delay` holds is served now. */
    clear: () => {
      armed.clear();
      release.abort();
      release = new AbortController();
    },
  };
}

/** A look-up has only the key. Its fault is found by the ids of the charge. */
async function idsOf(sql: BookSql, key: string): Promise<Target | undefined> {
  const [ids] = await sql<Target[]>`
    select subscription_id, payment_method_id from sandbox_gateway.charge where key = ${key}`;
  return ids;
}

function matches(fault: Fault, request: Request): boolean {
  return (
    fault.operation === request.operation &&
    (fault.subscriptionId === null || fault.subscriptionId === request.subscriptionId) &&
    (fault.paymentMethodId === null || fault.paymentMethodId === request.paymentMethodId)
  );
}

export function readFault(fields: Fields) {
  const fault = oneOf(fields, 'fault', FAULTS);
  return {
    operation: oneOf(fields, 'operation', OPERATIONS),
    fault,
    /** For `error_500` and `lose_answer`. `done`: the request is executed before the fault. */
    effect: fields['effect'] === undefined ? 'done' : oneOf(fields, 'effect', EFFECTS),
    delayMs:
      fault === 'delay' ? wholeNumber(fields, 'delayMs', { from: 1, to: DELAY_LIMIT_MS }) : 0,
    /** For `decline`: what the bank advises; null for nothing. */
    advice: readAdvice(fields['advice']),
    count: wholeNumber(fields, 'count', { from: 1, to: COUNT_LIMIT }),
    /** The share of matching requests to which the fault applies. */
    chance: share(fields['chance']),
    ...readTarget(object(fields, 'match')),
  };
}
