import type { Db } from '../../db/client.ts';
import type { Recorder } from '../command-line/operator-action.ts';
import type { Books } from './books.ts';

const COMMAND = 'verify accept';

/** A violation that an operator has accepted, with the reason. */
export interface Acceptance {
  readonly difference: string;
  readonly note: string;
  readonly by: string;
}

/** Returns what operators have accepted, by the sentence of the violation. The newest acceptance counts. */
export async function readAccepted(books: Books): Promise<Map<string, Acceptance>> {
  const rows = await books.ask<Acceptance>(`
    select facts->>'difference' as difference, facts->>'note' as note, acted_by as by
    from operator_action where command = '${COMMAND}' order by at`);
  return new Map(rows.map((each) => [each.difference, each]));
}

export const acceptanceText = ({ difference, note, by }: Acceptance): string =>
  `accepted by ${by}: ${difference} (${note})`;

/**
 * Records that an operator accepts every violation of `wrong` that names the record `subject`. A later violation of the record, and
 * the same one with another number, are new. Throws if no violation names it.
 */
export async function accept(
  db: Db,
  wrong: readonly string[],
  { subject, note }: { readonly subject: string; readonly note: string },
  record: Recorder,
): Promise<void> {
  // An id, or a key that contains one, so that no word accepts every violation.
  const isNamed = /^[\w:]*_[\w:]+$/.test(subject) && new RegExp(`(?<!\\w)${subject}(?!\\w)`);
  const differences = isNamed ? wrong.filter((line) => isNamed.test(line)) : [];
  if (differences.length === 0) throw new Error(`No violation names ${subject}.`);
  await db.transaction(async (tx) => {
    for (const difference of differences) {
      const facts = { difference, note };
      await record(tx, { command: COMMAND, subject, merchantId: null, facts });
    }
  });
}
