import type { MerchantSettings } from '../../db/schema/merchants.ts';
import { PAYMENT_METHOD_KINDS } from '../../domain/payment-method.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { retryPlanProblem } from '../../domain/retry-plan.ts';
import type { RetryPlan, UnpaidFrom } from '../../domain/retry-plan.ts';
import { JITTER_WINDOW_MAX_MS } from '../../domain/subscription/jitter.ts';
import { formatDuration, parseDuration } from './duration.ts';

/** The options of `merchant configure` as typed. An absent option leaves its setting unchanged. */
export interface ConfigureOptions {
  readonly retryPlan?: string;
  readonly afterExhausted?: RetryPlan['afterExhausted'];
  readonly unpaidFrom?: UnpaidFrom;
  readonly jitter?: string;
  readonly paymentMethods?: string;
}

export const AFTER_EXHAUSTED = ['stay_unpaid', 'end'] as const;

/**
 * Returns the settings that `options` change. `current` are the settings before the change.
 *
 * @throws Error naming every wrong option and its expected form.
 */
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
  const { retryPlan, afterExhausted, unpaidFrom, jitter, paymentMethods } = options;
  if (retryPlan !== undefined || afterExhausted !== undefined || unpaidFrom !== undefined) {
    const delaysMs =
      retryPlan === undefined
        ? current.retryPlan.delaysMs
        : read('--retry-plan', delaysOf(retryPlan));
    if (delaysMs) {
      changes.retryPlan = {
        ...current.retryPlan,
        delaysMs,
        ...(afterExhausted === undefined ? {} : { afterExhausted }),
        ...(unpaidFrom === undefined ? {} : { unpaidFrom }),
      };
    }
  }
  if (jitter !== undefined) {
    const jitterMs = read('--jitter', jitterMsOf(jitter));
    if (jitterMs !== undefined) changes.jitterMs = jitterMs;
  }
  if (paymentMethods !== undefined) {
    const kinds = read('--payment-methods', kindsOf(paymentMethods));
    if (kinds) changes.paymentMethods = kinds;
  }
  if (problems.length > 0) throw new Error(['Nothing was changed.', ...problems].join('\n  '));
  return changes;
}

/** Returns the delays in ms. If `text` is not a valid list, returns the reason. */
function delaysOf(text: string): number[] | string {
  const parts = text === 'none' ? [] : listOf(text);
  const delaysMs = parts.map(parseDuration).filter((ms) => ms !== null);
  if (delaysMs.length < parts.length) {
    return `"${text}" is not a list like 4h,8h,12h,24h (units d, h, m, s), nor none`;
  }
  return retryPlanProblem({ delaysMs, afterExhausted: 'stay_unpaid' }) ?? delaysMs;
}

function jitterMsOf(text: string): number | string {
  const ms = parseDuration(text);
  return ms !== null && ms <= JITTER_WINDOW_MAX_MS
    ? ms
    : `"${text}" is not a time like 30m, 0 or at most ${formatDuration(JITTER_WINDOW_MAX_MS)}`;
}

function kindsOf(text: string): PaymentMethodKind[] | string {
  const names = listOf(text);
  const kinds = PAYMENT_METHOD_KINDS.filter((kind) => names.includes(kind));
  const isKnown = names.every((name) => PAYMENT_METHOD_KINDS.some((kind) => kind === name));
  if (!isKnown) return `"${text}" is not a list of ${PAYMENT_METHOD_KINDS.join(', ')}`;
  // Where another payment method is unavailable, the hosted page offers CARD. Rule: D-43.
  return kinds.includes('CARD')
    ? kinds
    : 'CARD must be included: the other methods fall back to it';
}

function listOf(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

export interface SettingsShown {
  readonly retryPlan: readonly string[];
  readonly afterExhausted: RetryPlan['afterExhausted'];
  readonly unpaidFrom: UnpaidFrom;
  readonly jitter: string;
  readonly paymentMethods: readonly PaymentMethodKind[];
}

/** The settings in the form of the options, with the default of each unset setting. */
export function shownSettings({
  retryPlan,
  jitterMs = 0,
  paymentMethods = [...PAYMENT_METHOD_KINDS],
}: MerchantSettings): SettingsShown {
  return {
    retryPlan: retryPlan.delaysMs.map(formatDuration),
    afterExhausted: retryPlan.afterExhausted,
    unpaidFrom: retryPlan.unpaidFrom ?? 'first_decline',
    jitter: jitterMs === 0 ? '0' : formatDuration(jitterMs),
    paymentMethods,
  };
}

export function settingsLines(settings: SettingsShown): string[] {
  const delays = settings.retryPlan.length === 0 ? 'none' : settings.retryPlan.join(',');
  return [
    `  retry plan       ${delays}`,
    `  after exhausted  ${settings.afterExhausted}`,
    `  unpaid from      ${settings.unpaidFrom}`,
    `  jitter           ${settings.jitter}`,
    `  payment methods  ${settings.paymentMethods.join(',')}`,
  ];
}
