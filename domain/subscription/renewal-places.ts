import { jitterOf } from '../delays.ts';
import { nextDateAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** The length of a slot, in ms. */
const SLOT_MS = 4_000;
/** At most this many of a merchant's renewals start at their date although its slot is full, to leave room for others. */
const OF_SMALL_MERCHANT = 20;
/** With more slots in memory, the past ones are forgotten. */
const SLOTS_MAX = 200_000;

interface Slot {
  taken: number;
  /** The number of renewals that start at their date although the slot is full, at most its room; and by merchant. */
  stayed: number;
  stayedOf: Map<string, number> | null;
  /** If the slot is full: a later slot, before which every slot is full too. */
  next: number;
}

/**
 * Spreads the renewals that one process puts to sleep over the time after their dates, so that on average `perSecond` a
 * second start. A restart forgets the places.
 */
export class RenewalPlaces {
  private readonly room: number;
  /** By the slot's number since the epoch. */
  private readonly slots = new Map<number, Slot>();
  private lookThroughAbove = SLOTS_MAX;

  constructor(perSecond: number) {
    this.room = (perSecond * SLOT_MS) / 1_000;
  }

  /**
   * Takes a place for a renewal that is due at `dueAt`. Returns its delay in ms: 0 while the slot has room, and for the
   * first renewals of a merchant, whose places in later slots then stay empty. So every wave has the same rate.
   */
  take(dueAt: number, { merchantId, subscriptionId }: SubscriptionState): number {
    const due = Math.floor(dueAt / SLOT_MS);
    const number = this.firstWithRoom(due);
    this.slot(number).taken += 1;
    if (number === due || this.staysIn(this.slot(due), merchantId)) return 0;
    return (number - due) * SLOT_MS + jitterOf(subscriptionId, SLOT_MS - 1);
  }

  private staysIn(slot: Slot, merchantId: string): boolean {
    if (slot.stayed >= this.room) return false;
    slot.stayedOf ??= new Map();
    const ofMerchant = slot.stayedOf.get(merchantId) ?? 0;
    if (ofMerchant >= OF_SMALL_MERCHANT) return false;
    slot.stayed += 1;
    slot.stayedOf.set(merchantId, ofMerchant + 1);
    return true;
  }

  private firstWithRoom(due: number): number {
    const full: Slot[] = [];
    let number = due;
    for (let slot = this.slot(due); slot.taken >= this.room; slot = this.slot(number)) {
      full.push(slot);
      number = slot.next;
    }
    for (const slot of full) slot.next = number;
    return number;
  }

  private slot(number: number): Slot {
    const known = this.slots.get(number);
    if (known) return known;
    const slot = { taken: 0, stayed: 0, stayedOf: null, next: number + 1 };
    this.slots.set(number, slot);
    return slot;
  }

  /** Forgets the slots before `now` whenever the number of slots has doubled. */
  forgetBefore(now: number): void {
    if (this.slots.size <= this.lookThroughAbove) return;
    const first = Math.floor(now / SLOT_MS);
    for (const number of this.slots.keys()) if (number < first) this.slots.delete(number);
    this.lookThroughAbove = Math.max(SLOTS_MAX, 2 * this.slots.size);
  }
}

export type Place = Required<Pick<SubscriptionState, 'jitterMs' | 'jitterFor'>>;

/**
 * Chooses the delay of the next charge. Null if its date has one already, if no date comes, or if the merchant has set
 * a jitter.
 */
export function takePlace(
  places: RenewalPlaces,
  state: SubscriptionState,
  realNow: number,
): Place | null {
  const dueAt = nextDateAt(state);
  if (state.jitterFor === undefined || dueAt === null || state.jitterFor === dueAt) return null;
  places.forgetBefore(realNow);
  // A date in the past is charged at once.
  return { jitterMs: dueAt > realNow ? places.take(dueAt, state) : 0, jitterFor: dueAt };
}
