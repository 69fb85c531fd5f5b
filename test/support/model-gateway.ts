import type { DeclineCode } from '../../domain/declines.ts';

/**
 * What becomes of one request to charge. `clear`: carried out and answered; `answer_lost`: carried
 * out, and nobody hears of it; `request_lost`: it never arrives; `late`: it arrives `lateMs` after it
 * was given up; `rejected`: refused as a request, nothing done.
 */
export interface ChargeFault {
  line: 'clear' | 'answer_lost' | 'request_lost' | 'late' | 'rejected';
  /** The card's side, should it be asked. */
  card: 'good' | DeclineCode;
  lateMs: number;
}

/** What becomes of one look-up. */
export type LookupFault = 'unanswered' | 'rejected';

export interface BookEntry {
  key: string;
  amountMinor: number;
  outcome: 'charged' | DeclineCode;
  /** When the request arrived. */
  at: number;
  isGivenBack: boolean;
}

export type Found =
  | { kind: 'succeeded' }
  | { kind: 'declined'; code: DeclineCode }
  | { kind: 'unknown' }
  | { kind: 'rejected' };

const CLEAR: ChargeFault = { line: 'clear', card: 'good', lateMs: 0 };

/**
 * A gateway in memory that keeps the promises of `gateways/port.ts`, on a network that keeps none. Its
 * book is the truth, whatever anybody was answered. Breaking the port's side of the bargain (one key,
 * two amounts) throws.
 */
export class ModelGateway {
  /** By key. */
  readonly book = new Map<string, BookEntry>();
  readonly chargeFaults: ChargeFault[] = [];
  readonly lookupFaults: LookupFault[] = [];
  /** Nothing arrives, and nothing is answered, before this. */
  awayUntil = 0;
  /** What happened to late requests, for whoever wants to know that it did. */
  readonly lateArrivals: { key: string; wasMissed: boolean; isFirst: boolean }[] = [];
  private onTheWay: { key: string; amountMinor: number; card: ChargeFault['card']; at: number }[] =
    [];
  private readonly missed = new Set<string>();

  charge(key: string, amountMinor: number, now: number): Found {
    this.letArrive(now);
    const { line, card, lateMs } = this.chargeFaults.shift() ?? CLEAR;
    if (now < this.awayUntil || line === 'request_lost') return { kind: 'unknown' };
    if (line === 'rejected') return { kind: 'rejected' };
    if (line === 'late') {
      this.onTheWay.push({ key, amountMinor, card, at: now + lateMs });
      return { kind: 'unknown' };
    }
    const entry = this.enter(key, amountMinor, card, now);
    return line === 'answer_lost' ? { kind: 'unknown' } : answer(entry);
  }

  lookup(key: string, now: number): Found | { kind: 'absent' } {
    this.letArrive(now);
    if (now < this.awayUntil) return { kind: 'unknown' };
    const fault = this.lookupFaults.shift();
    if (fault) return { kind: fault === 'rejected' ? 'rejected' : 'unknown' };
    const entry = this.book.get(key);
    if (entry) return answer(entry);
    this.missed.add(key);
    return { kind: 'absent' };
  }

  /** Once per charge, as a refund under the charge's own refund key is. */
  giveBack(key: string): void {
    const entry = this.book.get(key);
    if (entry?.outcome !== 'charged' || entry.isGivenBack) {
      throw new Error(`${key}: nothing to give back`);
    }
    entry.isGivenBack = true;
  }

  /** Whether it was charged: what a person sees who asks by telephone. */
  hasCharged(key: string, now: number): boolean {
    this.letArrive(now);
    return this.book.get(key)?.outcome === 'charged';
  }

  /** Nothing fails any more; what is on its way still arrives. */
  heal(): void {
    this.chargeFaults.length = 0;
    this.lookupFaults.length = 0;
    this.awayUntil = 0;
  }

  /** What is due by `now` arrives, whoever asks. */
  letArrive(now: number): void {
    if (this.onTheWay.length === 0) return;
    const arrived = this.onTheWay.filter(({ at }) => at <= now).toSorted((a, b) => a.at - b.at);
    this.onTheWay = this.onTheWay.filter(({ at }) => at > now);
    for (const { key, amountMinor, card, at } of arrived) {
      const isFirst = !this.book.has(key);
      this.lateArrivals.push({ key, wasMissed: this.missed.has(key), isFirst });
      this.enter(key, amountMinor, card, at);
    }
  }

  private enter(
    key: string,
    amountMinor: number,
    card: ChargeFault['card'],
    at: number,
  ): BookEntry {
    const known = this.book.get(key);
    if (known && known.amountMinor !== amountMinor) throw new Error(`${key} has two amounts`);
    if (known) return known;
    const outcome: BookEntry['outcome'] = card === 'good' ? 'charged' : card;
    const entry = { key, amountMinor, outcome, at, isGivenBack: false };
    this.book.set(key, entry);
    return entry;
  }
}

function answer({ outcome }: BookEntry): Found {
  return outcome === 'charged' ? { kind: 'succeeded' } : { kind: 'declined', code: outcome };
}
