import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { SendError } from '../../../domain/delivery-schedule.ts';
import type { EndpointRef } from '../../../domain/endpoint-breaker.ts';
import type { Db } from '../../client.ts';
import { timestamp } from '../records.ts';

/** One attempt to send an event to an endpoint. Instants are real time. */
export interface Attempt {
  eventId: string;
  configId: string;
  attempt: number;
  isManual: boolean;
  at: number;
  httpStatus: number | null;
  error: SendError | null;
  durationMs: number;
  answer: string | null;
  nextAttemptAt: number | null;
}

export const ATTEMPT_OUTCOMES = ['delivered', 'failed'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** The last attempt of a page, behind which the next page begins. */
export type AttemptPlace = Pick<Attempt, 'at' | 'eventId' | 'attempt'>;

interface EndpointLogQuery extends EndpointRef {
  outcome?: AttemptOutcome | undefined;
  sinceAt?: number | undefined;
  before?: AttemptPlace | undefined;
  limit: number;
}

/** Returns attempts at an endpoint, the latest first. */
export async function attemptsOfEndpoint(db: Db, query: EndpointLogQuery): Promise<Attempt[]> {
  const { merchantId, configId, outcome, sinceAt, before, limit } = query;
  const part = (at: string, attempt: string, isOutcome: SQL): SQL => sql`merchant_id = ${merchantId}
    and config_id = ${configId} and ${isOutcome}
    ${sinceAt === undefined ? sql`` : sql`and ${sql.raw(at)} >= ${timestamp(sinceAt)}`}
    ${
      before === undefined
        ? sql``
        : sql`and ${sql.raw(at)} <= ${timestamp(before.at)} and (${sql.raw(at)}, event_id, ${sql.raw(attempt)})
            < (${timestamp(before.at)}, ${before.eventId}, ${before.attempt}::int)`
    }
    order by ${sql.raw(at)} desc, event_id desc, ${sql.raw(attempt)} desc limit ${limit}`;
  const isLogged = outcome === undefined ? sql`true` : isOfOutcome(outcome);
  const rows = await db.execute<AttemptRow>(sql`
    select ${SHOWN} from (
      (select ${LOGGED} from webhook_attempt where ${part('at', 'attempt', isLogged)})
      union all
      (select ${DELIVERED} from webhook_delivery
        where ${part('settled_at', 'attempts', sql`state = 'DELIVERED' and ${outcome !== 'failed'}`)})
    ) a
    order by a.at desc, a.event_id desc, a.attempt desc limit ${limit}`);
  return [...rows];
}

/** Returns all attempts to send an event, the earliest first. */
export async function attemptsOfEvent(
  db: Db,
  { merchantId, eventId }: { merchantId: string; eventId: string },
): Promise<Attempt[]> {
  const ofEvent = sql`merchant_id = ${merchantId} and event_id = ${eventId}`;
  const rows = await db.execute<AttemptRow>(sql`
    select ${SHOWN} from (
      select ${LOGGED} from webhook_attempt where ${ofEvent}
      union all
      select ${DELIVERED} from webhook_delivery where ${ofEvent} and state = 'DELIVERED'
    ) a
    order by a.at, a.config_id, a.attempt`);
  return [...rows];
}

type AttemptRow = { [Name in keyof Attempt]: Attempt[Name] };

const LOGGED =
  sql.raw(`event_id, config_id, attempt, is_manual, at, http_status, error, duration_ms, answer,
  next_attempt_at`);

/** The attempt that delivered an event, which has no row of its own. */
export const DELIVERED = sql.raw(`event_id, config_id, attempts as attempt, is_resent as is_manual,
  settled_at as at, last_http_status as http_status, null::text as error, coalesce(duration_ms, 0) as duration_ms,
  answer, null::timestamptz as next_attempt_at`);

const SHOWN =
  sql.raw(`a.event_id as "eventId", a.config_id as "configId", a.attempt, a.is_manual as "isManual",
  floor(extract(epoch from a.at) * 1000)::float8 as at, a.http_status as "httpStatus", a.error,
  a.duration_ms as "durationMs", a.answer,
  floor(extract(epoch from a.next_attempt_at) * 1000)::float8 as "nextAttemptAt"`);

const isOfOutcome = (outcome: AttemptOutcome): SQL => {
  const isSuccess = sql`(http_status between 200 and 299 and error is null)`;
  return outcome === 'delivered' ? isSuccess : sql`not coalesce(${isSuccess}, false)`;
};
