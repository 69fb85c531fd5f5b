import { open } from 'node:fs/promises';
import type { SavedCard } from '../../gateways/port.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { importedSubscription } from './imported.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import type { UpcomingCharge } from '../../domain/subscription/upcoming.ts';
import { jsonText } from '../command-line/terminal.ts';
import type { ReadImport } from './fields.ts';

export const RESULTS = ['ok', 'imported', 'already_imported', 'problem'] as const;
export type Result = (typeof RESULTS)[number];

/** One line of the report. Of the card's data, a line contains only the brand and the last four digits. */
export interface ReportLine {
  readonly line: number;
  readonly importId: string | null;
  /** `ok`: the dry run found no problem. */
  readonly result: Result;
  readonly problem?: string;
  readonly warning?: string;
  readonly subscriptionId?: string;
  readonly card?: { readonly brand: string; readonly lastFourDigit: string };
  readonly firstPaymentDate?: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly remainingCycleCount?: number;
}

/** Number of calendar months in the totals: the rest of this month, and three more. */
const MONTHS = 4;

export interface MonthTotal {
  readonly month: string;
  readonly currency: string;
  /** A bigint, because the sum of many lines may exceed 2^53. */
  readonly amountMinor: bigint;
  readonly charges: number;
}

export interface Summary {
  readonly lines: Readonly<Record<Result, number>>;
  /** The charges of the lines that are `ok` or `imported`, if every charge succeeds. */
  readonly totals: readonly MonthTotal[];
}

export function describeImport(given: ReadImport, card: SavedCard) {
  const { terms, cyclesCharged } = given.subscription;
  const { brand, lastFourDigit } = card;
  const expiresAt = Date.UTC(card.expiryYear, card.expiryMonth, 1);
  return {
    ...(expiresAt <= given.nextPaymentAt
      ? { warning: 'the card expires before the first payment' }
      : {}),
    card: { brand, lastFourDigit },
    firstPaymentDate: formatInstant(given.nextPaymentAt),
    amount: terms.amountMinor,
    currency: terms.currency,
    remainingCycleCount: terms.cycleCount - cyclesCharged,
  };
}

/** Adds up results and charges. `now` decides which months the totals have. */
export function createTotals(now: number) {
  const lines: Record<Result, number> = { ok: 0, imported: 0, already_imported: 0, problem: 0 };
  const totals = new Map<string, MonthTotal>();
  const month = new Date(now);
  const endAt = Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + MONTHS, 1);
  const addCharge = ({ at, amountMinor, currency }: UpcomingCharge): void => {
    if (at === null || at >= endAt) return;
    const key = `${currency} ${formatInstant(at).slice(0, 7)}`;
    const sum = totals.get(key);
    totals.set(key, {
      month: key.slice(4),
      currency,
      amountMinor: (sum?.amountMinor ?? 0n) + BigInt(amountMinor),
      charges: (sum?.charges ?? 0) + 1,
    });
  };
  return {
    add(result: Result, given: ReadImport | null): void {
      lines[result] += 1;
      if (given && (result === 'ok' || result === 'imported')) {
        chargesOf(given, now).forEach(addCharge);
      }
    },
    summary: (): Summary => ({
      lines,
      totals: [...totals.entries()]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([, total]) => total),
    }),
  };
}

/** Number of next charges that are computed: enough for the daily charges of the totals' four months. */
const CHARGES_MAX = MONTHS * 31;

function chargesOf({ subscription }: ReadImport, now: number): UpcomingCharge[] {
  const ids = { subscriptionId: '', merchantId: '', customerId: '', paymentMethodId: '' };
  const state = importedSubscription({
    ...subscription,
    ...ids,
    importedAt: now,
    jitter: { jitterMs: 0 },
  });
  return upcomingCharges(state, CHARGES_MAX, now);
}

export async function openReport(file: string) {
  const handle = await open(file, 'w');
  return {
    add: (lines: readonly ReportLine[]): Promise<void> =>
      handle.appendFile(lines.map((line) => `${jsonText(line)}\n`).join('')),
    close: (): Promise<void> => handle.close(),
  };
}
