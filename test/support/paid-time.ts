import { Temporal } from 'temporal-polyfill';
import type { IntervalUnit } from '../../domain/calendar.ts';

interface Span {
  readonly fromAt: number;
  readonly untilAt: number;
}

interface Calendar {
  readonly anchorAt: number;
  readonly unit: IntervalUnit;
  readonly count: number;
}

/**
 * The time that a payer has paid or may try for free, computed only from the agreed terms, the accepted
 * commands and the gateway's successful charges. A charge pays from its instant to the calendar's next date.
 * The dates are computed with JavaScript's Temporal API, not with the service's calendar code. A test reports
 * commands and charges in the order of their time.
 */
export class PaidTime {
  private trial: Span | null = null;
  private readonly charges: Span[] = [];
  private calendar: Calendar | null = null;
  private step: { unit: IntervalUnit; count: number };
  private isPaused = false;
  private pauseEndAt: number | null = null;
  private isTrialOver = false;
  /** The situations that have occurred, for tests that count how much they cover. */
  readonly situations = new Set<string>();

  constructor(unit: IntervalUnit, count: number) {
    this.step = { unit, count };
  }

  trialBegan(at: number, untilAt: number): void {
    this.trial = { fromAt: at, untilAt };
    this.calendar = { anchorAt: untilAt, ...this.step };
  }

  charged(at: number): void {
    this.passTo(at);
    this.calendar ??= { anchorAt: at, ...this.step };
    const paidUntil = Math.max(0, ...this.charges.map(({ untilAt }) => untilAt));
    if (paidUntil > at) this.situations.add('a payment before the end of the paid period');
    if (0 < paidUntil && paidUntil < at) this.situations.add('a gap between paid periods');
    this.charges.push({ fromAt: at, untilAt: dateAfter(this.calendar, at) });
    this.isTrialOver = true;
  }

  paused(at: number, resumeAt: number | null): void {
    if (this.isInTrial(at)) this.situations.add('a trial paused');
    this.isPaused = true;
    this.isTrialOver = true;
    this.pauseEndAt = resumeAt;
  }

  unpaused(newDateAt: number): void {
    this.isPaused = false;
    this.pauseEndAt = null;
    this.calendar = { anchorAt: newDateAt, ...this.step };
  }

  edited(at: number, newDateAt: number, step = this.step): void {
    this.passTo(at);
    this.step = step;
    this.calendar = { anchorAt: newDateAt, ...step };
    if (!this.trial || !this.isInTrial(at)) return;
    this.trial = { ...this.trial, untilAt: newDateAt };
    this.situations.add('the date of a trial moved');
  }

  cancelled(at: number): void {
    if (this.isInTrial(at)) this.situations.add('a trial cancelled');
    this.isPaused = false;
    this.pauseEndAt = null;
    this.isTrialOver = true;
  }

  includes(at: number): boolean {
    return this.spans.some(({ fromAt, untilAt }) => fromAt <= at && at < untilAt);
  }

  /** Every instant at which paid time begins or ends. */
  get edges(): number[] {
    return this.spans.flatMap(({ fromAt, untilAt }) => [fromAt, untilAt]);
  }

  private get spans(): Span[] {
    return this.trial ? [this.trial, ...this.charges] : this.charges;
  }

  private isInTrial(at: number): boolean {
    return this.trial !== null && !this.isTrialOver && at < this.trial.untilAt;
  }

  /** Ends a pause whose end date is not after `at`. */
  private passTo(at: number): void {
    if (this.isPaused && this.pauseEndAt !== null && this.pauseEndAt <= at) {
      this.unpaused(this.pauseEndAt);
      this.situations.add('a pause ended by itself');
    }
  }
}

const DURATIONS = {
  DAY: (days: number) => ({ days }),
  WEEK: (weeks: number) => ({ weeks }),
  MONTH: (months: number) => ({ months }),
  YEAR: (years: number) => ({ years }),
};

/** The calendar's first date after `at`. Its anchor is the date of the charge itself, also if the charge came earlier. */
function dateAfter({ anchorAt, unit, count }: Calendar, at: number): number {
  const anchor = Temporal.Instant.fromEpochMilliseconds(anchorAt).toZonedDateTimeISO('UTC');
  for (let index = 1; ; index += 1) {
    const date = anchor.add(DURATIONS[unit](index * count)).epochMilliseconds;
    if (date > at) return date;
  }
}
