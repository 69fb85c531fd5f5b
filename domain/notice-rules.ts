import { INTERVAL_COUNT_MAX } from './calendar.ts';
import type { IntervalUnit } from './calendar.ts';
import { NOTICE_TYPES } from './events.ts';
import type { NoticeType } from './events.ts';

/** When a merchant is told of a charge: so many days before it, if the billing cycle has at least `cycleDays` days. */
export interface NoticeRule {
  readonly notice: NoticeType;
  readonly cycleDays: number;
  /** Once for each full year since the subscription was created, where no other rule applies. */
  readonly isYearly?: true;
  /** Greatest first. */
  readonly daysBefore: readonly number[];
  /** True if a charge waits until a notice had the least of these days. */
  readonly mustPrecede?: true;
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

/** Returns the rules of the settings. Without `chargeWithoutNotice` all but that of an expiring card hold back a charge. */
export function noticeRulesOf({
  notices = DEFAULT_NOTICE_RULES,
  chargeWithoutNotice = true,
}: {
  notices?: NoticeRules;
  chargeWithoutNotice?: boolean;
}): NoticeRules {
  if (chargeWithoutNotice) return notices;
  return notices.map((rule) =>
    rule.notice === 'payment_method.expiring' ? rule : { ...rule, mustPrecede: true },
  );
}

interface Cycle {
  readonly interval: IntervalUnit;
  readonly intervalCount: number;
}

/** As the rules count them. */
export const daysOfCycle = ({ interval, intervalCount }: Cycle): number =>
  DAYS_OF[interval] * intervalCount;

/** Returns the rule with the longest cycle that the billing cycle reaches, else a yearly one. */
export function ruleFor(
  rules: NoticeRules,
  notice: NoticeType,
  cycle: Cycle,
): NoticeRule | undefined {
  const days = daysOfCycle(cycle);
  const reached = rules.filter((rule) => rule.notice === notice && rule.cycleDays <= days);
  const rank = (rule: NoticeRule) => (rule.isYearly ? -1 : rule.cycleDays);
  return reached.toSorted((a, b) => rank(b) - rank(a))[0];
}

const RULE = /^([a-z_.]+)(?::(?:(\d{1,4})d|(yearly)))?=(\d{1,3}d(?:,\d{1,3}d)*)$/;

/** Reads `off`, `default` or rules such as {@link noticeRulesText} writes them. Returns a problem as text. */
export function readNoticeRules(text: string): NoticeRules | string {
  if (text === 'off') return [];
  if (text === 'default') return DEFAULT_NOTICE_RULES;
  const rules: NoticeRule[] = [];
  for (const part of text.split(';')) {
    const rule = readRule(part.trim());
    if (typeof rule === 'string') return rule;
    const isRepeated = rules.some(
      (each) =>
        each.notice === rule.notice &&
        each.cycleDays === rule.cycleDays &&
        each.isYearly === rule.isYearly,
    );
    if (isRepeated) return `"${part.trim()}" repeats another rule`;
    rules.push(rule);
  }
  return rules;
}

function readRule(text: string): NoticeRule | string {
  const [, name, minimum = '0', yearly, list = ''] = RULE.exec(text) ?? [];
  if (name === undefined) {
    return `"${text}" is not off, default or rules like ${noticeRulesText(DEFAULT_NOTICE_RULES)}`;
  }
  const notice = NOTICE_TYPES.find((type) => type === name);
  if (notice === undefined) return `"${name}" is not one of ${NOTICE_TYPES.join(', ')}`;
  const fewestDays = Number(minimum);
  if (fewestDays > CYCLE_DAYS_MAX) return `"${text}": a cycle has at most ${CYCLE_DAYS_MAX} days`;
  if (yearly !== undefined && notice !== 'subscription.renewal_upcoming') {
    return `"${text}": only subscription.renewal_upcoming can be yearly`;
  }
  const days = [...new Set(list.split(',').map((each) => Number.parseInt(each, 10)))];
  const areDays = days.every((count) => count >= 1 && count <= DAYS_BEFORE_MAX);
  return areDays && days.length <= NOTICES_OF_RULE_MAX
    ? {
        notice,
        cycleDays: fewestDays,
        ...(yearly !== undefined && { isYearly: true }),
        daysBefore: days.toSorted((a, b) => b - a),
      }
    : `"${text}": a rule has at most ${NOTICES_OF_RULE_MAX} notices, from 1d to ${DAYS_BEFORE_MAX}d before the charge`;
}

/** For example `subscription.renewal_upcoming:180d=40d,10d;subscription.trial_ending=8d`. */
export function noticeRulesText(rules: NoticeRules): string {
  const texts = rules.map(({ notice, cycleDays, isYearly: yearly, daysBefore: days }) => {
    const fewest = cycleDays === 0 ? '' : `:${cycleDays}d`;
    const cycle = yearly ? ':yearly' : fewest;
    return `${notice}${cycle}=${days.map((count) => `${count}d`).join(',')}`;
  });
  return texts.length === 0 ? 'off' : texts.join(';');
}
