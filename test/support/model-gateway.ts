import type { DeclineCode } from '../../domain/declines.ts';

/**
 * The fault of one charge request. `clear`: the gateway executes and answers the request. `answer_lost`: the
 * gateway executes the request, and the answer is lost. `request_lost`: the request never arrives. `late`:
 * the request arrives `lateMs` after the send, and the answer is lost. `rejected`: the gateway refuses the
 * request as invalid.
 */
export interface ChargeFault {
  line: 'clear' | 'answer_lost' | 'request_lost' | 'late' | 'rejected';
  /** The outcome of the charge when the request arrives, or when the payer confirms the charge. */
  card: 'good' | DeclineCode;
  /**
   * Delay in ms of a `late` request. For a charge with a present payer: the time until the payer confirms it.
   */
  lateMs: number;
}

/** The fault of one look-up. */
export type LookupFault = 'unanswered' | 'rejected';

export interface BookEntry {
  key: string;
  amountMinor: number;
  outcome: 'charged' | 'withdrawn' | DeclineCode;
  /**
   * The instant at which the payer confirms the charge. The gateway reveals `outcome` only then. Null after that
   * instant, and for a charge without a present payer.
   */
  confirmedAt: number | null;
  /** The instant at which the request arrived. */
  at: number;
  isGivenBack: boolean;
}

export type Found =
  | { kind: 'succeeded' }
  | { kind: 'declined'; code: DeclineCode }
  | { kind: 'unknown'; awaitsPayer?: true }
  | { kind: 'rejected' };

const CLEAR: ChargeFault = { line: 'clear', card: 'good', lateMs: 0 };

/**
 * A gateway in memory that keeps the promises of `gateways/port.ts` on an unreliable network. `book` contains
 * the real outcomes, also when an answer was lost. Throws when a key is used with two amounts.
 */
export class ModelGateway {
  /** Entries by idempotency key. */
  readonly book = new Map<string, BookEntry>();
  readonly chargeFaults: ChargeFault[] = [];
  readonly lookupFaults: LookupFault[] = [];
  /** Before this instant no new request arrives. Late requests still arrive. */
  awayUntil = 0;
  /**
   * Every late arrival. `wasMissed`: a look-up found nothing before the arrival. `isFirst`: no other request
   * with the key had arrived.
   */
  readonly lateArrivals: { key: string; wasMissed: boolean; isFirst: boolean }[] = [];
  private onTheWay: { key: string; amountMinor: number; card: ChargeFault['card']; at: number }[] =
    [];
  private readonly missed = new Set<string>();

  /** `isPayerPresent`: the charge is made when the payer confirms it, unless it is withdrawn before. */
  charge(key: string, amountMinor: number, now: number, isPayerPresent = false): Found {
    this.letArrive(now);
    const { line, card, lateMs } = this.chargeFaults.shift() ?? CLEAR;
    if (now < this.awayUntil || line === 'request_lost') return { kind: 'unknown' };
    if (line === 'rejected') return { kind: 'rejected' };
    if (line === 'late') {
      this.onTheWay.push({ key, amountMinor, card, at: now + lateMs });
      return { kind: 'unknown' };
    }
    const entry = this.enter(key, amountMinor, card, now, isPayerPresent ? now + lateMs : null);
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

  /**
   * Withdraws a charge, so that it is never made. If the charge is already decided, returns its outcome
   * instead.
   */
  withdraw(key: string, amountMinor: number, now: number): Found | { kind: 'withdrawn' } {
    this.letArrive(now);
    if (now < this.awayUntil) return { kind: 'unknown' };
    const entry = this.enter(key, amountMinor, 'good', now, Infinity);
    if (entry.confirmedAt !== null)
      Object.assign(entry, { outcome: 'withdrawn', confirmedAt: null });
    return entry.outcome === 'withdrawn' ? { kind: 'withdrawn' } : answer(entry);
  }

  /** Refunds a charge. Throws on a second refund, because a charge has one refund key. */
  giveBack(key: string): void {
    const entry = this.book.get(key);
    if (entry?.outcome !== 'charged' || entry.isGivenBack) {
      throw new Error(`${key}: nothing to give back`);
    }
    entry.isGivenBack = true;
  }

  /** Whether the key is charged, as a manual check at the gateway would show. */
  hasCharged(key: string, now: number): boolean {
    this.letArrive(now);
    const entry = this.book.get(key);
    return entry?.outcome === 'charged' && entry.confirmedAt === null;
  }

  /** Removes all faults. Late requests still arrive. */
  heal(): void {
    this.chargeFaults.length = 0;
    this.lookupFaults.length = 0;
    this.awayUntil = 0;
  }

  /** Applies the payers' confirmations and delivers the late requests that are due by `now`. */
  letArrive(now: number): void {
    for (const entry of this.book.values()) {
      if (entry.confirmedAt !== null && entry.confirmedAt <= now) entry.confirmedAt = null;
    }
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
    confirmedAt: number | null = null,
  ): BookEntry {
    const known = this.book.get(key);
    if (known && known.amountMinor !== amountMinor) throw new Error(`${key} has two amounts`);
    if (known) return known;
    const outcome: BookEntry['outcome'] = card === 'good' ? 'charged' : card;
    const isConfirmed = confirmedAt === null || confirmedAt <= at;
    const entry = {
      key,
      amountMinor,
      outcome,
      confirmedAt: isConfirmed ? null : confirmedAt,
      at,
      isGivenBack: false,
    };
    this.book.set(key, entry);
    return entry;
  }
}

function answer({ outcome, confirmedAt }: BookEntry): Found {
  if (confirmedAt !== null) return { kind: 'unknown', awaitsPayer: true };
  if (outcome === 'withdrawn') return { kind: 'rejected' };
  return outcome === 'charged' ? { kind: 'succeeded' } : { kind: 'declined', code: outcome };
}
