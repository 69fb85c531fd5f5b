import { INTERVAL_COUNT_MAX } from './calendar.ts';
import type { IntervalUnit } from './calendar.ts';
import { NOTICE_TYPES } from './events.ts';
import type { NoticeType } from './events.ts';

/** When a merchant is told of a charge: so many days before it, if the billing cycle has at least `cycleDays` days. */
export interface NoticeRule {
  readonly notice: NoticeType;
  readonly cycleDays: number;
  /** Greatest first. */
  readonly daysBefore: readonly number[];
}

export type NoticeRules = readonly NoticeRule[];

/**
 * As of November 2026. Day 40: California BPC 17602 and France L.215-1; day 20: California, for a new amount; day 10:
 * Mastercard, for cycles of 180 days or more; day 8: Visa and California, before a trial ends. No rule asks for day 30.
 */
export const DEFAULT_NOTICE_RULES: NoticeRules = [
  { notice: 'subscription.renewal_upcoming', cycleDays: 180, daysBefore: [40, 10] },
  { notice: 'subscription.trial_ending', cycleDays: 0, daysBefore: [8] },
  { notice: 'subscription.amount_changing', cycleDays: 180, daysBefore: [20] },
  { notice: 'payment_method.expiring', cycleDays: 180, daysBefore: [30] },
];

const DAYS_BEFORE_MAX = 366;
const NOTICES_OF_RULE_MAX = 5;
/** A month has 30 days here and a year 365, so that six months are a cycle of 180 days. */
const DAYS_OF: Readonly<Record<IntervalUnit, number>> = { DAY: 1, WEEK: 7, MONTH: 30, YEAR: 365 };
const CYCLE_DAYS_MAX = INTERVAL_COUNT_MAX.YEAR * DAYS_OF.YEAR;

/** Returns the days of the rule with the longest cycle that the billing cycle reaches; none without such a rule. */
export function daysBefore(
  rules: NoticeRules,
  notice: NoticeType,
  { interval, intervalCount }: { interval: IntervalUnit; intervalCount: number },
): readonly number[] {
  const days = DAYS_OF[interval] * intervalCount;
  const reached = rules.filter((rule) => rule.notice === notice && rule.cycleDays <= days);
  return reached.toSorted((a, b) => b.cycleDays - a.cycleDays)[0]?.daysBefore ?? [];
}

const RULE = /^([a-z_.]+)(?::(\d{1,4})d)?=(\d{1,3}d(?:,\d{1,3}d)*)$/;

/** Reads `off`, `default` or rules such as {@link noticeRulesText} writes them. Returns a problem as text. */
export function readNoticeRules(text: string): NoticeRules | string {
  if (text === 'off') return [];
  if (text === 'default') return DEFAULT_NOTICE_RULES;
  const rules: NoticeRule[] = [];
  for (const part of text.split(';')) {
    const rule = readRule(part.trim());
    if (typeof rule === 'string') return rule;
    const isRepeated = rules.some(
      ({ notice, cycleDays }) => notice === rule.notice && cycleDays === rule.cycleDays,
    );
    if (isRepeated) return `"${part.trim()}" repeats another rule`;
    rules.push(rule);
  }
  return rules;
}

function readRule(text: string): NoticeRule | string {
  const [, name, minimum = '0', list = ''] = RULE.exec(text) ?? [];
  if (name === undefined) {
    return `"${text}" is not off, default or rules like ${noticeRulesText(DEFAULT_NOTICE_RULES)}`;
  }
  const notice = NOTICE_TYPES.find((type) => type === name);
  if (notice === undefined) return `"${name}" is not one of ${NOTICE_TYPES.join(', ')}`;
  const cycleDays = Number(minimum);
  if (cycleDays > CYCLE_DAYS_MAX) return `"${text}": a cycle has at most ${CYCLE_DAYS_MAX} days`;
  const days = [...new Set(list.split(',').map((each) => Number.parseInt(each, 10)))];
  const areDays = days.every((count) => count >= 1 && count <= DAYS_BEFORE_MAX);
  return areDays && days.length <= NOTICES_OF_RULE_MAX
    ? { notice, cycleDays, daysBefore: days.toSorted((a, b) => b - a) }
    : `"${text}": a rule has at most ${NOTICES_OF_RULE_MAX} notices, from 1d to ${DAYS_BEFORE_MAX}d before the charge`;
}

/** For example `subscription.renewal_upcoming:180d=40d,10d;subscription.trial_ending=8d`. */
export function noticeRulesText(rules: NoticeRules): string {
  const texts = rules.map(({ notice, cycleDays, daysBefore: days }) => {
    const cycle = cycleDays === 0 ? '' : `:${cycleDays}d`;
    return `${notice}${cycle}=${days.map((count) => `${count}d`).join(',')}`;
  });
  return texts.length === 0 ? 'off' : texts.join(';');
}
