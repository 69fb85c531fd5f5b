import type { StatedAdvice } from '../../domain/declines.ts';

const HOUR_MS = 3_600_000;

const NEVER = { kind: 'never' } as const;
const NEW_DETAILS = { kind: 'new_details_needed' } as const;
const after = (hours: number) => ({ kind: 'not_before', waitMs: hours * HOUR_MS }) as const;

type Advice = Readonly<Record<string, StatedAdvice | undefined>>;

/** Stripe's `advice_code`. `try_again_later` names no instant, so the retry plan applies. Read in November 2026. */
const BY_STRIPE: Advice = { do_not_try_again: NEVER, confirm_card_data: NEW_DETAILS };

/**
 * `network_advice_code` by card network: Mastercard's merchant advice codes, where 02 says only *later*, and Visa's
 * categories of declines, where 02 and 04 allow a retry. Read in November 2026.
 */
const BY_NETWORK: Readonly<Record<string, Advice | undefined>> = {
  mastercard: {
    '01': NEW_DETAILS,
    '03': NEVER,
    '21': NEVER,
    '24': after(1),
    '25': after(24),
    '26': after(2 * 24),
    '27': after(4 * 24),
    '28': after(6 * 24),
    '29': after(8 * 24),
    '30': after(10 * 24),
  },
  visa: { '01': NEVER, '03': NEW_DETAILS },
};

/** The advice of decline codes that are an advice themselves. */
const BY_DECLINE_CODE: Advice = {
  do_not_try_again: NEVER,
  new_account_information_available: NEW_DETAILS,
};

interface SaidAboutRetry {
  readonly decline_code?: string | undefined;
  readonly advice_code?: string | undefined;
  readonly network_advice_code?: string | undefined;
  readonly network?: string | undefined;
}

/** The network's advice goes before that of Stripe, because only the network names an instant. */
export function adviceOf(said: SaidAboutRetry): StatedAdvice | null {
  return (
    BY_NETWORK[said.network ?? '']?.[said.network_advice_code ?? ''] ??
    BY_STRIPE[said.advice_code ?? ''] ??
    BY_DECLINE_CODE[said.decline_code ?? ''] ??
    null
  );
}
