import { Option } from 'commander';
import type { Command } from 'commander';
import { shownCharging, shownPayerRules } from '../../api/routes/merchants/settings.ts';
import type { MerchantSettings, WebhookRetention } from '../../db/schema/merchants.ts';
import { brandUrlProblem, colourProblem, statementSuffixProblem } from '../../domain/branding.ts';
import type { Branding } from '../../domain/branding.ts';
import { CARD_LIMITS_MAX } from '../../domain/card-limits.ts';
import type { CardLimits } from '../../domain/card-limits.ts';
import { DECLARATION_RULES } from '../../domain/declaration.ts';
import type { DeclarationRule } from '../../domain/declaration.ts';
import { PAYMENT_METHOD_KINDS } from '../../domain/payment-method.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { formatDuration, parseDuration } from '../../domain/duration.ts';
import { PORTAL_RIGHTS } from '../../domain/subscription/portal.ts';
import type { PortalRight } from '../../domain/subscription/portal.ts';
import { noticeRulesText, readNoticeRules } from '../../domain/notice-rules.ts';
import { AFTER_EXHAUSTED, readDelays, UNPAID_FROM } from '../../domain/retry-plan.ts';
import type { RetryPlan, UnpaidFrom } from '../../domain/retry-plan.ts';

export interface ConfigureOptions {
  readonly retryPlan?: string;
  readonly cardLimits?: string;
  readonly statementSuffix?: string;
  readonly afterExhausted?: RetryPlan['afterExhausted'];
  readonly unpaidFrom?: UnpaidFrom;
  readonly jitter?: string;
  readonly notices?: string;
  readonly chargeWithoutNotice?: 'true' | 'false';
  readonly paymentMethods?: string;
  readonly keepEvents?: string;
  readonly keepAttempts?: string;
  readonly declarations?: DeclarationRule;
  readonly withdrawalDays?: string;
  readonly portal?: string;
  readonly logo?: string;
  readonly colour?: string;
  readonly terms?: string;
  readonly support?: string;
}

const BRANDING = {
  logo: 'logoUrl',
  colour: 'colour',
  terms: 'termsUrl',
  support: 'supportUrl',
} as const satisfies Partial<Record<keyof ConfigureOptions, keyof Branding>>;
type BrandingOption = keyof typeof BRANDING;
const BRANDING_OPTIONS = Object.keys(BRANDING) as BrandingOption[];

/** Adds the settings that decide when a subscription is charged. */
export function addChargingOptions(command: Command): Command {
  return command
    .option(
      '--retry-plan <delays>',
      'delay of each retry after the attempt before it: 4h,8h,12h,24h; or none',
    )
    .addOption(
      new Option('--after-exhausted <what>', 'what happens after the last retry').choices([
        ...AFTER_EXHAUSTED,
      ]),
    )
    .addOption(
      new Option('--unpaid-from <when>', 'when a declined subscription becomes UNPAID').choices([
        ...UNPAID_FROM,
      ]),
    )
    .option(
      '--card-limits <numbers>',
      'most unpaid attempts on one card in 24 h, in 30 days: 10,15',
    )
    .option('--jitter <time>', 'spread renewals of new subscriptions: auto, or over 30m, 4h, 0');
}

/** Adds the settings of what payers may do by themselves. */
export function addPayerOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--declarations <what>', 'what a payer’s declaration does').choices([
        ...DECLARATION_RULES,
      ]),
    )
    .option('--portal <list>', 'what a payer may do on the own page: card,cancel,pause; or none')
    .option('--withdrawal-days <days>', 'days in which a payer may withdraw: 14');
}

/** Longest jitter window, in ms, shorter than the shortest interval, which is one day. */
export const JITTER_WINDOW_MAX_MS = 12 * 3_600_000;

/** Throws an error that names every wrong option and its expected form. */
export function settingsChanges(
  options: ConfigureOptions,
  current: MerchantSettings,
): Partial<MerchantSettings> {
  const problems: string[] = [];
  const read = <Value>(option: string, value: Value | string): Value | undefined => {
    if (typeof value !== 'string') return value;
    problems.push(`${option}: ${value}`);
    return undefined;
  };
  const changes: Partial<MerchantSettings> = {};
  const set = <Key extends keyof MerchantSettings>(
    key: Key,
    option: string,
    given: string | undefined,
    parse: (text: string) => MerchantSettings[Key] | string,
  ): void => {
    const value = given === undefined ? undefined : read(option, parse(given));
    if (value !== undefined) changes[key] = value;
  };
  const { retryPlan, afterExhausted, unpaidFrom } = options;
  if (retryPlan !== undefined || afterExhausted !== undefined || unpaidFrom !== undefined) {
    const delaysMs =
      retryPlan === undefined
        ? current.retryPlan.delaysMs
        : read('--retry-plan', readDelays(retryPlan === 'none' ? [] : listOf(retryPlan)));
    if (delaysMs) {
      changes.retryPlan = {
        ...current.retryPlan,
        delaysMs,
        ...(afterExhausted === undefined ? {} : { afterExhausted }),
        ...(unpaidFrom === undefined ? {} : { unpaidFrom }),
      };
    }
  }
  set('cardLimits', '--card-limits', options.cardLimits, cardLimitsOf);
  set('jitterMs', '--jitter', options.jitter, jitterMsOf);
  set('notices', '--notices', options.notices, readNoticeRules);
  set('paymentMethods', '--payment-methods', options.paymentMethods, kindsOf);
  set('portal', '--portal', options.portal, rightsOf);
  set('withdrawalDays', '--withdrawal-days', options.withdrawalDays, daysOf);
  if (options.statementSuffix !== undefined) {
    const problem = statementSuffixProblem(options.statementSuffix);
    if (problem === null) changes.statementSuffix = options.statementSuffix;
    else problems.push(`--statement-suffix: ${problem}`);
  }
  if (options.chargeWithoutNotice !== undefined) {
    changes.chargeWithoutNotice = options.chargeWithoutNotice === 'true';
  }
  const { notices, chargeWithoutNotice } = { ...current, ...changes };
  if (chargeWithoutNotice === false && notices?.length === 0) {
    problems.push('--charge-without-notice: false needs --notices');
  }
  if (options.keepEvents !== undefined || options.keepAttempts !== undefined) {
    const webhookRetention = read('--keep-events, --keep-attempts', retentionOf(options, current));
    if (webhookRetention) changes.webhookRetention = webhookRetention;
  }
  if (options.declarations !== undefined) changes.declarations = options.declarations;
  const brandingChanges = BRANDING_OPTIONS.flatMap((option) => {
    const text = options[option];
    if (text === undefined) return [];
    const problem = text === 'none' ? null : brandingProblem(option, text);
    if (problem !== null) problems.push(`--${option}: ${problem}`);
    return [[BRANDING[option], text] as const];
  });
  if (brandingChanges.length > 0) {
    const all = Object.entries({ ...current.branding, ...Object.fromEntries(brandingChanges) });
    changes.branding = Object.fromEntries(all.filter(([, value]) => value !== 'none'));
  }
  if (problems.length > 0) throw new Error(['Nothing was changed.', ...problems].join('\n  '));
  return changes;
}

function brandingProblem(option: BrandingOption, text: string): string | null {
  return option === 'colour' ? colourProblem(text) : brandUrlProblem(text);
}

function cardLimitsOf(text: string): CardLimits | string {
  const most = CARD_LIMITS_MAX;
  const [perDay = 0, per30Days = 0, ...more] = text.split(',').map(Number);
  const isLimit = (count: number, max: number) =>
    Number.isInteger(count) && count >= 1 && count <= max;
  return more.length === 0 && isLimit(perDay, most.perDay) && isLimit(per30Days, most.per30Days)
    ? { perDay, per30Days }
    : `"${text}" is not two numbers like 10,15, at most ${most.perDay},${most.per30Days}`;
}

function jitterMsOf(text: string): number | null | string {
  if (text === 'auto') return null;
  const ms = parseDuration(text);
  return ms !== null && ms <= JITTER_WINDOW_MAX_MS
    ? ms
    : `"${text}" is not auto, 0 or a time like 30m, at most ${formatDuration(JITTER_WINDOW_MAX_MS)}`;
}

/** Longest retention, in days. */
const KEPT_DAYS_MAX = 3_650;
const KEPT_DAYS_DEFAULT = 30;

function retentionOf(
  { keepEvents, keepAttempts }: ConfigureOptions,
  { webhookRetention: current }: MerchantSettings,
): WebhookRetention | string {
  const daysOf = (text: string | undefined, otherwise: number): number =>
    text === undefined ? otherwise : /^\d{1,4}$/.test(text) ? Number(text) : NaN;
  const bodyDays = daysOf(keepEvents, current?.bodyDays ?? KEPT_DAYS_DEFAULT);
  const attemptDays = daysOf(keepAttempts, Math.min(current?.attemptDays ?? bodyDays, bodyDays));
  const areDays = [bodyDays, attemptDays].every((days) => days >= 1 && days <= KEPT_DAYS_MAX);
  if (!areDays) return `each must be a number of days from 1 to ${KEPT_DAYS_MAX}`;
  if (attemptDays > bodyDays) return 'attempts cannot be kept longer than events';
  return { bodyDays, attemptDays };
}

function rightsOf(text: string): PortalRight[] | string {
  const names = text === 'none' ? [] : listOf(text);
  const isKnown = names.every((name) => PORTAL_RIGHTS.some((right) => right === name));
  return isKnown
    ? PORTAL_RIGHTS.filter((right) => names.includes(right))
    : `"${text}" is not a list of ${PORTAL_RIGHTS.join(', ')}, or none`;
}

/** Longest withdrawal period, in days, such as that of a contract without the instruction about the right. */
const WITHDRAWAL_DAYS_MAX = 379;

function daysOf(text: string): number | string {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  return days >= 1 && days <= WITHDRAWAL_DAYS_MAX
    ? days
    : `"${text}" is not a number of days from 1 to ${WITHDRAWAL_DAYS_MAX}`;
}

function kindsOf(text: string): PaymentMethodKind[] | string {
  const names = listOf(text);
  const kinds = PAYMENT_METHOD_KINDS.filter((kind) => names.includes(kind));
  const isKnown = names.every((name) => PAYMENT_METHOD_KINDS.some((kind) => kind === name));
  if (!isKnown) return `"${text}" is not a list of ${PAYMENT_METHOD_KINDS.join(', ')}`;
  // Where another payment method is unavailable, the hosted page offers CARD.
  return kinds.includes('CARD')
    ? kinds
    : 'CARD must be included: the other methods fall back to it';
}

function listOf(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

/** The settings in the form of the options, with the default of each unset setting. */
export function shownSettings(settings: MerchantSettings) {
  const { branding = {}, webhookRetention } = settings;
  return {
    ...shownCharging(settings),
    ...shownPayerRules(settings),
    statementSuffix: settings.statementSuffix ?? null,
    keepEvents: webhookRetention?.bodyDays ?? null,
    keepAttempts: webhookRetention?.attemptDays ?? null,
    logo: branding.logoUrl ?? null,
    colour: branding.colour ?? null,
    terms: branding.termsUrl ?? null,
    support: branding.supportUrl ?? null,
  };
}

export function settingsLines(settings: ReturnType<typeof shownSettings>): string[] {
  const delays = settings.retryPlan.length === 0 ? 'none' : settings.retryPlan.join(',');
  return [
    `  retry plan       ${delays}`,
    `  after exhausted  ${settings.afterExhausted}`,
    `  unpaid from      ${settings.unpaidFrom}`,
    `  card limits      ${settings.cardLimits.perDay},${settings.cardLimits.per30Days}`,
    `  jitter           ${settings.jitter}`,
    `  notices          ${noticeRulesText(settings.notices.map(({ eventType: notice, ...rule }) => ({ notice, ...rule })))}`,
    `  without notice   ${settings.chargeWithoutNotice ? 'charged' : 'not charged'}`,
    `  on statements    ${settings.statementSuffix ?? 'nothing'}`,
    `  payment methods  ${settings.paymentMethods.join(',')}`,
    `  declarations     ${settings.declarations}`,
    `  withdrawal       ${settings.withdrawalDays} days`,
    `  own page         ${settings.portal.join(',') || 'none'}`,
    `  keep events      ${keptLine(settings.keepEvents)}`,
    `  keep attempts    ${keptLine(settings.keepAttempts)}`,
    ...BRANDING_OPTIONS.map((option) => `  ${option.padEnd(15)}  ${settings[option] ?? 'none'}`),
  ];
}

const keptLine = (days: number | null): string =>
  days === null ? 'as the workers are configured' : `${days} days`;
