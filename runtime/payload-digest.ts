import { createHash } from 'node:crypto';
import type { DataConverter, Payload } from '@temporalio/common';

const DIGEST = 'digest';
const DIGEST_BYTES = 12;
const QUOTE = 0x22;

/** Adds a digest to the metadata of each object and list in a history. It has no key, so it shows only accidents. */
export const dataConverter: DataConverter = {
  payloadCodecs: [
    {
      encode: async (payloads) => payloads.map(withDigest),
      decode: async (payloads) => payloads,
    },
  ],
};

/** Texts for the Web UI get no digest: they are many, and a replay compares them. */
function withDigest(payload: Payload): Payload {
  const { data, metadata } = payload;
  // `undefined` has no bytes, and the SDK gives an array for them.
  if (!data?.length || data[0] === QUOTE) return payload;
  return { ...payload, metadata: { ...metadata, [DIGEST]: digestOf(data) } };
}

/** True if the payload has a digest, of other data. */
export function isAltered({ data, metadata }: Payload): boolean {
  const digest = metadata?.[DIGEST];
  return digest !== undefined && !digestOf(data ?? new Uint8Array()).equals(digest);
}

export const digestOf = (data: Uint8Array): Buffer =>
  createHash('sha256').update(data).digest().subarray(0, DIGEST_BYTES);
