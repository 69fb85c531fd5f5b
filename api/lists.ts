import { z } from 'zod';
import { LIST_SORTS } from '../db/repositories/lists.ts';
import type { ListPosition, ListQuery, ListSort } from '../db/repositories/lists.ts';
import { isInstant } from '../domain/calendar.ts';
import { isId } from '../domain/ids.ts';
import type { IdPrefix } from '../domain/ids.ts';
import { ok } from './http/request.ts';
import type { Merchant } from './http/request.ts';
import { idText, instantText, numberText, optional, receiptId, text } from './fields.ts';
import { problemsError } from './http/body.ts';
import type { Fields } from './http/body.ts';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;
const OFFSET_MAX = 255;
const EMAIL_MAX = 255;
const POSITION_MAX = 999_999_999;

export const FILTERS = {
  customerId: optional(idText()).describe('Only records of this customer.'),
  subscriptionId: optional(idText()).describe('Only records of this subscription.'),
  receiptId: optional(receiptId).describe('Only records with this `receiptId`, your own order id.'),
  email: optional(text(EMAIL_MAX)).describe(
    'Only records with this e-mail address in `customerDetails`. Upper and lower case are equal.',
  ),
};

export function statusFilter<const Status extends string>(statuses: readonly Status[]) {
  return optional(oneOrSeveral(statuses)).describe(
    'Only records with this status. Several are separated by commas.',
  );
}

/** Of a parameter with commas, or of one that is given several times, as some generated clients do. */
const valuesIn = (given: unknown): string[] =>
  [given].flat().flatMap((text) => String(text).split(','));

/** Several values are separated by commas. */
export function oneOrSeveral<const Value extends string>(values: readonly Value[]) {
  const isValue = (value: string): value is Value => (values as readonly string[]).includes(value);
  return z
    .custom<string | string[]>((given) => valuesIn(given).every(isValue), {
      error: `must be one of ${values.join(', ')}, or several with commas`,
    })
    .meta({ type: 'array', items: { type: 'string', enum: values } })
    .transform((given) => valuesIn(given).filter(isValue));
}

/** For a list whose records have the time at which money moved. */
export const SETTLED = {
  settledAfter: optional(instantText).describe(
    'Only records whose money moved at this instant or later. Epoch milliseconds.',
  ),
  settledBefore: optional(instantText).describe(
    'Only records whose money moved before this instant. Epoch milliseconds.',
  ),
  sort: optional(z.enum(LIST_SORTS)).describe(
    '`settledAt`: only records whose money moved, the latest movement first. Default: `createdAt`.',
  ),
};

export function limitOr(limitDefault: number, records: string) {
  return optional(numberText(1, LIMIT_MAX))
    .transform((limit) => limit ?? limitDefault)
    .describe(`Maximum number of ${records}. Default: ${limitDefault}.`);
}

/** `startTime` is inclusive, `endTime` is exclusive. The offset of a list with another prefix is refused. */
export function listQuery(prefix: IdPrefix, limitDefault = LIMIT_DEFAULT) {
  const offset = text(OFFSET_MAX).transform((given, ctx): ListPosition => {
    const position = positionOf(prefix, given);
    if (position !== null) return position;
    const message = 'must be metadata.offset of this list';
    ctx.addIssue({ code: 'custom', message, input: given });
    return z.NEVER;
  });
  return {
    limit: limitOr(limitDefault, 'records on a page'),
    offset: optional(offset).describe(
      '`metadata.offset` of the previous page. Absent for the first page.',
    ),
    startTime: optional(instantText).describe(
      'Only records created at this instant or later. Epoch milliseconds.',
    ),
    endTime: optional(instantText).describe(
      'Only records created before this instant. Epoch milliseconds.',
    ),
  };
}

interface Listed {
  readonly id: string;
  readonly createdAt: number;
  readonly settledAt?: number | null;
}

type Query = Fields<ReturnType<typeof listQuery>> & Partial<Fields<typeof SETTLED>>;

/** Newest records first. A record that is created between two reads does not shift the next page. */
export async function answerPage<Row extends Listed, Presented>(
  { merchant, query }: { merchant: Merchant; query: Query },
  read: (query: ListQuery) => Promise<Row[]>,
  present: (row: Row) => Presented,
) {
  const { limit, offset, sort = 'createdAt' } = query;
  if (offset && offset.sort !== sort) {
    throw problemsError([{ field: 'offset', message: 'is of a list with another sort' }]);
  }
  // One record more than the limit shows whether there is another page.
  const rows = await read({
    merchantId: merchant.id,
    limit: limit + 1,
    startAt: query.startTime,
    endAt: query.endTime,
    settledFromAt: query.settledAfter,
    settledUntilAt: query.settledBefore,
    sort,
    after: offset,
  });
  return pageOf(rows, limit, (last) => offsetOf(positionIn(sort, last)), present);
}

/** For a list without ids, oldest first. Its offset is a number that rises from record to record, from 1. */
export function numberedQuery(records: string) {
  return {
    limit: limitOr(LIMIT_MAX, `${records} on a page`),
    offset: optional(numberText(1, POSITION_MAX)).describe(
      '`metadata.offset` of the previous page. Absent for the first page.',
    ),
  };
}

/** `numberOf` a record: its position, if the list has no other number. */
export async function answerNumbered<Row, Presented>(
  { query }: { query: Fields<ReturnType<typeof numberedQuery>> },
  read: (query: { after: number; limit: number }) => Promise<Row[]>,
  numberOf: (row: Row, position: number) => number,
  present: (row: Row) => Presented,
) {
  const { limit, offset: after = 0 } = query;
  const rows = await read({ after, limit: limit + 1 });
  return pageOf(rows, limit, (last) => String(numberOf(last, after + limit)), present);
}

/** Answers the first `limit` of `rows`, with the offset of the next page if there are more rows. */
export function pageOf<Row, Presented>(
  rows: readonly Row[],
  limit: number,
  offsetAfter: (last: Row) => string,
  present: (row: Row) => Presented,
) {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return ok({
    data: page.map(present),
    metadata: rows.length > limit && last !== undefined ? { offset: offsetAfter(last) } : {},
  });
}

function positionIn(sort: ListSort, { id, createdAt, settledAt }: Listed): ListPosition {
  return { sort, id, at: sort === 'settledAt' ? (settledAt ?? createdAt) : createdAt };
}

/** The offset of a list by `createdAt` does not name its sort. */
function offsetOf({ sort, at, id }: ListPosition): string {
  const text = `${at} ${id}${sort === 'createdAt' ? '' : ` ${sort}`}`;
  return Buffer.from(text, 'latin1').toString('base64url');
}

/** Decodes an offset. Returns null for text that `offsetOf` did not write. */
function positionOf(prefix: IdPrefix, offset: string): ListPosition | null {
  const [, instant, id, settled] =
    /^(\d{1,15}) (\w+)( settledAt)?$/.exec(Buffer.from(offset, 'base64url').toString('latin1')) ??
    [];
  const sort = settled === undefined ? 'createdAt' : 'settledAt';
  const position = { sort, at: Number(instant), id: id ?? '' } as const;
  // Several Base64 texts decode to one position. Only the text that `offsetOf` writes is accepted.
  const isOurs = isInstant(position.at) && isId(prefix, id) && offsetOf(position) === offset;
  return isOurs ? position : null;
}
