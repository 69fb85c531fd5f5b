import type { ListPosition, ListQuery } from '../db/repositories/lists.ts';
import { isInstant } from '../domain/calendar.ts';
import { isId } from '../domain/ids.ts';
import type { IdPrefix } from '../domain/ids.ts';
import { callerOf } from './context.ts';
import type { Context } from './context.ts';
import { instantText, numberText, optional, readFields, text } from './fields.ts';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;
const OFFSET_MAX = 255;

/** The query of every list. `startTime` is inclusive, `endTime` is exclusive. Rule: D-§7. */
export const ListQueryFields = {
  limit: optional(numberText(1, LIMIT_MAX)),
  offset: optional(text(OFFSET_MAX)),
  startTime: optional(instantText),
  endTime: optional(instantText),
};

/** Descriptions of {@link ListQueryFields} in the OpenAPI document. */
export const LIST_NOTES = {
  limit: `Maximum number of records on a page. Default: ${LIMIT_DEFAULT}.`,
  offset: '`metadata.offset` of the previous page. Absent for the first page.',
  startTime: 'Only records created at this instant or later. Epoch milliseconds.',
  endTime: 'Only records created before this instant. Epoch milliseconds.',
};

interface Listed {
  readonly id: string;
  readonly createdAt: number;
}

/**
 * A page of one of the caller's lists, newest records first. `metadata.offset` says where the next
 * page begins and is absent on the last page. A record that is created between two reads does not
 * shift the next page.
 *
 * @throws DomainError `bad_request` for an invalid query, including an offset of another list.
 * Rule: D-§7.
 */
export async function listPage<Row extends Listed>(
  ctx: Context,
  prefix: IdPrefix,
  read: (query: ListQuery) => Promise<Row[]>,
  present: (row: Row) => object,
) {
  const after = (offset: string | undefined): ListPosition | null | undefined =>
    offset === undefined ? undefined : positionOf(prefix, offset);
  const given = readFields(ListQueryFields, ctx.query, ({ offset }) =>
    after(offset) === null
      ? [{ field: 'offset', message: 'must be metadata.offset of this list' }]
      : [],
  );
  const limit = given.limit ?? LIMIT_DEFAULT;
  // The extra record shows whether there is another page.
  const rows = await read({
    merchantId: callerOf(ctx).id,
    limit: limit + 1,
    startAt: given.startTime,
    endAt: given.endTime,
    after: after(given.offset) ?? undefined,
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    data: page.map(present),
    metadata: rows.length > limit && last !== undefined ? { offset: offsetOf(last) } : {},
  };
}

function offsetOf({ createdAt, id }: Listed): string {
  return Buffer.from(`${createdAt} ${id}`, 'latin1').toString('base64url');
}

/** Decodes an offset. Null for text that `offsetOf` did not write. */
function positionOf(prefix: IdPrefix, offset: string): ListPosition | null {
  const [, instant, id] =
    /^(\d{1,15}) (\w+)$/.exec(Buffer.from(offset, 'base64url').toString('latin1')) ?? [];
  const position = { createdAt: Number(instant), id: id ?? '' };
  // Several Base64 texts decode to one position. Only the text that `offsetOf` writes is accepted.
  const isOurs = isInstant(position.createdAt) && isId(prefix, id) && offsetOf(position) === offset;
  return isOurs ? position : null;
}
