import { z } from 'zod';
import type { ListPosition, ListQuery } from '../db/repositories/lists.ts';
import { isInstant } from '../domain/calendar.ts';
import { isId } from '../domain/ids.ts';
import type { IdPrefix } from '../domain/ids.ts';
import { ok } from './answers.ts';
import type { Merchant } from './context.ts';
import { idText, instantText, numberText, optional, text } from './fields.ts';
import type { Fields } from './fields.ts';
import { receiptId } from './payment-fields.ts';

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

/** `startTime` is inclusive, `endTime` is exclusive. The offset of a list with another prefix is refused. */
export function listQuery(prefix: IdPrefix) {
  const offset = text(OFFSET_MAX).transform((given, ctx): ListPosition => {
    const position = positionOf(prefix, given);
    if (position !== null) return position;
    const message = 'must be metadata.offset of this list';
    ctx.addIssue({ code: 'custom', message, input: given });
    return z.NEVER;
  });
  return {
    limit: optional(numberText(1, LIMIT_MAX)).describe(
      `Maximum number of records on a page. Default: ${LIMIT_DEFAULT}.`,
    ),
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
}

/** Newest records first. A record that is created between two reads does not shift the next page. */
export async function answerPage<Row extends Listed, Presented>(
  { merchant, query }: { merchant: Merchant; query: Fields<ReturnType<typeof listQuery>> },
  read: (query: ListQuery) => Promise<Row[]>,
  present: (row: Row) => Presented,
) {
  const { limit = LIMIT_DEFAULT, offset, startTime, endTime } = query;
  // One record more than the limit shows whether there is another page.
  const rows = await read({
    merchantId: merchant.id,
    limit: limit + 1,
    startAt: startTime,
    endAt: endTime,
    after: offset,
  });
  return pageOf(rows, limit, offsetOf, present);
}

/** For a list without ids, oldest first. Its offset is a number that rises from record to record, from 1. */
export function numberedQuery(records: string) {
  return {
    limit: optional(numberText(1, LIMIT_MAX)).describe(
      `Maximum number of ${records} on a page. Default: ${LIMIT_MAX}.`,
    ),
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
  const { limit = LIMIT_MAX, offset: after = 0 } = query;
  const rows = await read({ after, limit: limit + 1 });
  return pageOf(rows, limit, (last) => String(numberOf(last, after + limit)), present);
}

/** Answers the first `limit` of `rows`, with the offset of the next page if there are more rows. */
function pageOf<Row, Presented>(
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

function offsetOf({ createdAt, id }: Listed): string {
  return Buffer.from(`${createdAt} ${id}`, 'latin1').toString('base64url');
}

/** Decodes an offset. Returns null for text that `offsetOf` did not write. */
function positionOf(prefix: IdPrefix, offset: string): ListPosition | null {
  const [, instant, id] =
    /^(\d{1,15}) (\w+)$/.exec(Buffer.from(offset, 'base64url').toString('latin1')) ?? [];
  const position = { createdAt: Number(instant), id: id ?? '' };
  // Several Base64 texts decode to one position. Only the text that `offsetOf` writes is accepted.
  const isOurs = isInstant(position.createdAt) && isId(prefix, id) && offsetOf(position) === offset;
  return isOurs ? position : null;
}
