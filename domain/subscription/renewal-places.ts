import { jitterOf } from '../delays.ts';
import { nextDateAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** The length of a slot, in ms. All renewals of a slot may start at one instant. */
const SLOT_MS = 4_000;
/** This many of a merchant's renewals may also stay in a full slot, which then holds at most twice its room. */
const OF_SMALL_MERCHANT = 100;
/** With more slots in memory, the past ones are forgotten. */
const SLOTS_MAX = 200_000;

interface Slot {
  taken: number;
  /** The number of renewals that stayed although the slot was full, by merchant. */
  stayed: Map<string, number> | null;
  /** If the slot is full: a later slot, before which every slot is full too. */
  next: number;
}

/**
 * Spreads the renewals that one process puts to sleep over the time after their dates, so that at most `perSecond` a
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

  /** Takes a place for a renewal that is due at `dueAt`. Returns its delay in ms: 0 while the slot has room. */
  take(dueAt: number, { merchantId, subscriptionId }: SubscriptionState): number {
    const due = Math.floor(dueAt / SLOT_MS);
    const number = this.staysIn(this.slot(due), merchantId) ? due : this.firstWithRoom(due);
    this.slot(number).taken += 1;
    return number === due ? 0 : number * SLOT_MS - dueAt + jitterOf(subscriptionId, SLOT_MS - 1);
  }

  private staysIn(slot: Slot, merchantId: string): boolean {
    if (slot.taken < this.room) return true;
    if (slot.taken >= 2 * this.room) return false;
    slot.stayed ??= new Map();
    const stayed = slot.stayed.get(merchantId) ?? 0;
    slot.stayed.set(merchantId, stayed + 1);
    return stayed < OF_SMALL_MERCHANT;
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
    const slot = { taken: 0, stayed: null, next: number + 1 };
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
