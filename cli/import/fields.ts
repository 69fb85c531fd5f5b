import { IMPORT_STATUSES } from '../../db/schema/subscriptions.ts';
import { z } from 'zod';
import {
  amount,
  currency,
  customerDetails,
  description,
  instant,
  metadata,
  optional,
  receiptId,
  text,
  wholeNumber,
} from '../../api/fields.ts';
import {
  GIVEN_TWICE,
  ignoredFields,
  readFields,
  UnstoredRefusal,
  withoutEmpty,
} from '../../api/http/body.ts';
import type { Fields, Problem } from '../../api/http/body.ts';
import { repeatedMember } from '../../api/http/json.ts';
import {
  cycleCount,
  interval,
  intervalCount,
  termsFieldsProblems,
} from '../../api/routes/subscriptions/create.ts';
import type { SubscriptionOrder } from '../../db/repositories/subscriptions/write-change.ts';
import type { ImportedTerms } from '../../db/schema/subscriptions.ts';
import { BILLING_HORIZON_AT, cycleAt, formatInstant } from '../../domain/calendar.ts';
import { datesAround, indexOfDate } from './imported.ts';
import type { ImportedSubscription } from './imported.ts';

const ID_MAX = 255;

const id = () => text(ID_MAX).min(1, { error: 'must not be empty' });

/** An id at the gateway. It contains no slash, because an adapter may join several ids by a slash. */
const gatewayId = () =>
  text(ID_MAX).regex(/^[^\s/]+$/, { error: 'must not be empty or contain spaces or slashes' });

const FIELDS = {
  importId: id(),
  customerDetails,
  amount,
  currency,
  interval,
  intervalCount,
  cycleCount,
  cyclesCharged: wholeNumber(0),
  nextPaymentDate: instant,
  anchorDate: optional(instant),
  currentPeriodEnd: optional(instant),
  status: optional(z.enum(IMPORT_STATUSES)),
  gatewayCustomerId: optional(gatewayId()),
  gatewayMethodId: gatewayId(),
  receiptId: optional(receiptId),
  description: optional(description),
  metadata: optional(metadata()),
};

type Given = Partial<Fields<typeof FIELDS>>;

/** A line whose fields are valid. The line is not yet checked against the time, the database and the gateway. */
export interface ReadImport {
  readonly importId: string;
  readonly subscription: Pick<
    ImportedSubscription,
    'status' | 'terms' | 'cyclesCharged' | 'anchorAt' | 'nextIndex' | 'currentPeriodEndAt'
  >;
  readonly nextPaymentAt: number;
  readonly gatewayCustomerId: string | null;
  /** The method's id as the gateway's adapter expects it: with the customer, if the line names one. */
  readonly gatewayMethodId: string;
  readonly order: SubscriptionOrder;
  readonly terms: ImportedTerms;
}

export type Reading =
  | { readonly kind: 'read'; readonly given: ReadImport }
  | { readonly kind: 'problem'; readonly importId: string | null; readonly problem: string };

/** Names every invalid and unknown field: a misspelled optional field could lead to a charge on a wrong date. */
export function readImport(line: string): Reading {
  let body: unknown;
  try {
    body = JSON.parse(line);
  } catch {
    return { kind: 'problem', importId: null, problem: 'is not valid JSON' };
  }
  const given = withoutEmpty(FIELDS, body);
  const repeated = repeatedMember(line);
  const problems = repeated === null ? [] : [`${repeated}: ${GIVEN_TWICE}`];
  let fields: Fields<typeof FIELDS> | null = null;
  try {
    fields = readFields(FIELDS, given, lineProblems);
  } catch (error) {
    if (!(error instanceof UnstoredRefusal)) throw error;
    problems.push(error.message);
  }
  // If a field is invalid, there are no parsed fields to compare with. Then only top-level names are checked.
  const unknown = fields === null ? unknownNames(given) : ignoredFields(FIELDS, given, fields);
  problems.push(...unknown.map((name) => `${name}: is not a field of an import`));
  if (fields === null || problems.length > 0) {
    return { kind: 'problem', importId: importIdOf(given), problem: problems.join('; ') };
  }
  return { kind: 'read', given: importOf(fields) };
}

function unknownNames(body: unknown): string[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return [];
  return Object.keys(body).filter((name) => !Object.hasOwn(FIELDS, name));
}

function importIdOf(body: unknown): string | null {
  const given = (body as { importId?: unknown } | null)?.importId;
  return FIELDS.importId.safeParse(given).success ? String(given) : null;
}

function lineProblems(given: Given): Problem[] {
  const bounds = termsFieldsProblems(given);
  return [
    ...bounds,
    ...cycleProblems(given),
    ...trialProblems(given),
    // The calendar is defined only for counts within their bounds.
    ...(bounds.some(({ field }) => field.endsWith('Count')) ? [] : calendarProblems(given)),
  ];
}

function cycleProblems({ cycleCount: total, cyclesCharged }: Given): Problem[] {
  if (total === undefined || cyclesCharged === undefined || cyclesCharged < total) return [];
  return [{ field: 'cyclesCharged', message: 'must be less than cycleCount' }];
}

/** In a trial no cycle is charged yet. The trial's end is the calendar's anchor and the end of the period. */
function trialProblems(given: Given): Problem[] {
  if (given.status !== 'TRIALING') return [];
  const problems: Problem[] = [];
  if (given.cyclesCharged !== undefined && given.cyclesCharged !== 0) {
    problems.push({ field: 'cyclesCharged', message: 'must be 0 in TRIALING' });
  }
  for (const field of ['anchorDate', 'currentPeriodEnd'] as const) {
    if (given[field] !== undefined && given[field] !== given.nextPaymentDate) {
      problems.push({ field, message: 'must be nextPaymentDate or absent in TRIALING' });
    }
  }
  return problems;
}

/** Checks that nextPaymentDate is a date of the calendar and that the last billing date is before 2200. */
function calendarProblems(given: Given): Problem[] {
  const { interval: unit, intervalCount: count, nextPaymentDate, anchorDate } = given;
  if (unit === undefined || count === undefined || nextPaymentDate === undefined) return [];
  const calendar = {
    anchorAt: anchorDate ?? nextPaymentDate,
    interval: unit,
    intervalCount: count,
  };
  const index = indexOfDate(calendar, nextPaymentDate);
  if (index === null) {
    const nearest = datesAround(calendar, nextPaymentDate)
      .map((at) => `${at} (${formatInstant(at)})`)
      .join(' and ');
    const message = `is not a date of the calendar of anchorDate; the nearest are ${nearest}`;
    return [{ field: 'nextPaymentDate', message }];
  }
  const { cycleCount: total, cyclesCharged } = given;
  if (total === undefined || cyclesCharged === undefined || cyclesCharged >= total) return [];
  const lastIndex = index + total - cyclesCharged - 1;
  const isEarly = cycleAt(calendar.anchorAt, unit, count, lastIndex) < BILLING_HORIZON_AT;
  const message = 'the last billing date must be before the year 2200';
  return isEarly ? [] : [{ field: 'cycleCount', message }];
}

function importOf(fields: Fields<typeof FIELDS>): ReadImport {
  const { importId, status = 'ACTIVE', nextPaymentDate, cyclesCharged } = fields;
  const { anchorDate = nextPaymentDate, currentPeriodEnd = nextPaymentDate } = fields;
  const { gatewayCustomerId = null, gatewayMethodId } = fields;
  const terms = {
    amountMinor: fields.amount,
    currency: fields.currency,
    interval: fields.interval,
    intervalCount: fields.intervalCount,
    cycleCount: fields.cycleCount,
  };
  const nextIndex = indexOfDate({ ...terms, anchorAt: anchorDate }, nextPaymentDate);
  if (nextIndex === null) throw new Error(`line ${importId} was read without a date`);
  const { amountMinor, ...rest } = terms;
  return {
    importId,
    subscription: {
      status,
      terms,
      cyclesCharged,
      anchorAt: anchorDate,
      nextIndex,
      currentPeriodEndAt: currentPeriodEnd,
    },
    nextPaymentAt: nextPaymentDate,
    gatewayCustomerId,
    gatewayMethodId:
      gatewayCustomerId === null ? gatewayMethodId : `${gatewayCustomerId}/${gatewayMethodId}`,
    order: {
      customerDetails: fields.customerDetails,
      receiptId: fields.receiptId,
      description: fields.description,
      metadata: fields.metadata,
      phoneNumberRequired: false,
    },
    terms: {
      amount: amountMinor,
      ...rest,
      cyclesCharged,
      nextPaymentDate,
      anchorDate,
      currentPeriodEnd,
      status,
      gatewayCustomerId,
      gatewayMethodId,
    },
  };
}

export function dateProblem(
  { nextPaymentAt, subscription }: ReadImport,
  now: number,
): string | null {
  const dates = {
    nextPaymentDate: nextPaymentAt,
    currentPeriodEnd: subscription.currentPeriodEndAt,
  };
  const past = Object.entries(dates).filter(([, at]) => at <= now);
  if (past.length === 0) return null;
  return past
    .map(([field, at]) => `${field}: ${formatInstant(at)} is not in the future`)
    .join('; ');
}

/** Returns how the terms differ from those of an earlier import: `amount was 1999, is 2999`; null if equal. */
export function termsDifference(earlier: ImportedTerms, now: ImportedTerms): string | null {
  const differing = Object.keys(now).filter((name) => earlier[name] !== now[name]);
  if (differing.length === 0) return null;
  return differing.map((name) => `${name} was ${earlier[name]}, is ${now[name]}`).join('; ');
}
