import type { FeedPlace } from '../../../db/repositories/webhooks/feed.ts';

export function cursorOf({ position, mark }: FeedPlace): string {
  return Buffer.from(`${position} ${mark}`, 'latin1').toString('base64url');
}

/** Decodes a cursor. Returns null for text that {@link cursorOf} did not write. */
export function placeOf(cursor: string): FeedPlace | null {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, position, mark] = /^(\d{1,15}) (\d{1,15})$/.exec(text) ?? [];
  const place = { position: Number(position), mark: Number(mark) };
  // Several Base64 texts decode to one place. Only the text that `cursorOf` writes is accepted.
  return mark !== undefined && cursorOf(place) === cursor ? place : null;
}
