import { z } from 'zod';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import type { MerchantSettings } from '../../../db/schema/merchants.ts';
import { DEFAULT_CARD_LIMITS } from '../../../domain/card-limits.ts';
import { DECLARATION_RULES, WITHDRAWAL_DAYS } from '../../../domain/declaration.ts';
import { formatDuration } from '../../../domain/duration.ts';
import { NOTICE_TYPES } from '../../../domain/events.ts';
import { DEFAULT_NOTICE_RULES } from '../../../domain/notice-rules.ts';
import { PAYMENT_METHOD_KINDS } from '../../../domain/payment-method.ts';
import { DEFAULT_PORTAL, PORTAL_RIGHTS } from '../../../domain/subscription/portal.ts';
import { AFTER_EXHAUSTED, UNPAID_FROM } from '../../../domain/retry-plan.ts';
import { declarationPath, payerPath } from '../../../runtime/payer-links.ts';
import { count, paymentMethodKind, url } from '../../answer-fields.ts';
import type { RateLimits } from '../../deps.ts';
import { ok } from '../../http/request.ts';
import { route } from '../../http/route.ts';

export const getMerchantSettings = route({
  operationId: 'getMerchantSettings',
  method: 'get',
  path: '/merchant/settings',
  tag: 'Settings',
  summary: 'Read your settings',
  description:
    'What the operator has set for you. `POST /subscription/simulate` plays another retry plan.',
  isExtension: true,
  answer: {
    description: 'The settings.',
    schema: z.object({
      retryPlan: z.array(z.string()).meta({
        description: 'Delay of each automatic retry after the attempt before it, such as `4h`.',
      }),
      afterExhausted: z.enum(AFTER_EXHAUSTED).meta({
        description: 'What happens to an unpaid subscription after the last retry.',
      }),
      unpaidFrom: z.enum(UNPAID_FROM).meta({
        description: 'When a declined subscription becomes UNPAID.',
      }),
      cardLimits: z
        .object({
          perDay: count('In 24 hours.'),
          per30Days: count('In 30 days.'),
        })
        .meta({
          description:
            'The most unpaid attempts on one saved card, over all its subscriptions and charges. A planned charge then waits.',
        }),
      jitter: z.string().meta({
        description:
          'Time over which renewals are spread after their date, such as `30m`. `auto`: no longer than needed. `0`: not at all.',
      }),
      notices: z
        .array(
          z.object({
            eventType: z.enum(NOTICE_TYPES),
            cycleDays: count('Fewest days of a billing cycle; a month has 30 days, a year 365.'),
            isYearly: z.boolean().optional().meta({
              description:
                'Only of the first charge after each year, where no other entry of the `eventType` counts.',
            }),
            daysBefore: z.array(count('Days before the charge.')),
          }),
        )
        .meta({
          description:
            'When you are told of a charge that is to come. For a cycle, the entry of its `eventType` with the most ' +
            '`cycleDays` counts. A change concerns only charges that are planned later.',
        }),
      chargeWithoutNotice: z.boolean().meta({
        description:
          'False: a charge waits until its notice had the fewest days of its entry. A change concerns only charges that are planned later.',
      }),
      paymentMethods: z.array(paymentMethodKind).meta({
        description: 'Payment methods that your pages may offer.',
      }),
      branding: z
        .object({
          logo: url('Logo on your pages.').optional(),
          colour: z.string().optional().meta({ description: 'Colour of the button.' }),
          terms: url('Your terms.').optional(),
          support: url('Your support.').optional(),
        })
        .meta({ description: 'What your pages show besides your name.' }),
      webhookRetention: z
        .object({
          eventDays: count('Days for which an event can be read.'),
          attemptDays: count('Days for which the attempts to deliver it can be read.'),
        })
        .optional()
        .meta({ description: 'Absent: the default of the installation, 30 days if unchanged.' }),
      declarations: z.enum(DECLARATION_RULES).meta({
        description:
          'What follows when a payer cancels or withdraws on your pages: `tell` sends you the event only, `execute` also ' +
          'ends the subscription where the payer may end it.',
      }),
      portal: z.array(z.enum(PORTAL_RIGHTS)).meta({
        description:
          'What a payer does on the page of `POST /customer/portal`: change the card, cancel, pause and resume.',
      }),
      withdrawalDays: count('Days after the day of the contract in which a payer may withdraw.'),
      declarationPages: z
        .object({
          cancellation: url('Where your payers cancel.'),
          withdrawal: url('Where your payers withdraw.'),
        })
        .meta({ description: 'Pages without login, to which you link from your site.' }),
      payerPage: url(
        'Page on which your payers ask for a link to their own page by e-mail. It exists while an active endpoint takes ' +
          '`customer.portal_requested`, for example `mailto:payer`.',
      ),
      limits: z
        .object({
          windowSeconds: count('Length of the window in which requests are counted.'),
          requests: count('Your requests in a window.'),
          readsOfOneSubscription: count('Reads and simulations of one subscription in a window.'),
        })
        .meta({ description: 'Limits of each API process.' }),
    }),
    examples: {
      'The defaults': {
        retryPlan: ['4h', '8h', '12h', '1d'],
        afterExhausted: 'stay_unpaid',
        unpaidFrom: 'first_decline',
        cardLimits: { perDay: 10, per30Days: 15 },
        jitter: 'auto',
        notices: [
          { eventType: 'subscription.renewal_upcoming', cycleDays: 180, daysBefore: [40, 10] },
          { eventType: 'subscription.trial_ending', cycleDays: 0, daysBefore: [8] },
          { eventType: 'subscription.amount_changing', cycleDays: 180, daysBefore: [20] },
          { eventType: 'payment_method.expiring', cycleDays: 180, daysBefore: [30] },
        ],
        chargeWithoutNotice: true,
        paymentMethods: ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'],
        branding: {},
        declarations: 'tell',
        portal: ['card'],
        withdrawalDays: 14,
        declarationPages: {
          cancellation: 'https://pay.example/m/mer_0002sSOLuA3bC5dE7fG9hJ1k/cancel',
          withdrawal: 'https://pay.example/m/mer_0002sSOLuA3bC5dE7fG9hJ1k/withdraw',
        },
        payerPage: 'https://pay.example/m/mer_0002sSOLuA3bC5dE7fG9hJ1k',
        limits: { windowSeconds: 1, requests: 100, readsOfOneSubscription: 10 },
      },
    },
  },
  handle: async ({ merchant }, { db, rateLimits, publicUrl }) =>
    ok({
      ...presentSettings(await loadSettings(db, merchant.id), rateLimits),
      declarationPages: {
        cancellation: publicUrl + declarationPath('cancellation', merchant.id),
        withdrawal: publicUrl + declarationPath('withdrawal', merchant.id),
      },
      payerPage: publicUrl + payerPath(merchant.id),
    }),
});

function presentSettings(settings: MerchantSettings, limits: RateLimits) {
  const { branding = {}, webhookRetention } = settings;
  const { logoUrl: logo, colour, termsUrl: terms, supportUrl: support } = branding;
  const { windowSeconds, requests, readsOfOneSubscription } = limits;
  return {
    ...shownCharging(settings),
    ...shownPayerRules(settings),
    branding: { logo, colour, terms, support },
    ...(webhookRetention && {
      webhookRetention: {
        eventDays: webhookRetention.bodyDays,
        attemptDays: webhookRetention.attemptDays,
      },
    }),
    limits: { windowSeconds, requests, readsOfOneSubscription },
  };
}

/** The settings that decide about charges, as the operator gives them, with the default of each unset one. */
export function shownCharging(settings: MerchantSettings) {
  const { retryPlan, paymentMethods = [...PAYMENT_METHOD_KINDS] } = settings;
  return {
    retryPlan: retryPlan.delaysMs.map(formatDuration),
    afterExhausted: retryPlan.afterExhausted,
    unpaidFrom: retryPlan.unpaidFrom ?? 'first_decline',
    cardLimits: settings.cardLimits ?? DEFAULT_CARD_LIMITS,
    jitter: shownJitter(settings),
    notices: (settings.notices ?? DEFAULT_NOTICE_RULES).map(
      ({ notice: eventType, daysBefore, ...rule }) => ({
        eventType,
        ...rule,
        daysBefore: [...daysBefore],
      }),
    ),
    chargeWithoutNotice: settings.chargeWithoutNotice ?? true,
    paymentMethods,
  };
}

/** What payers may do by themselves, with the defaults. */
export function shownPayerRules({ declarations, withdrawalDays, portal }: MerchantSettings) {
  return {
    portal: portal ?? [...DEFAULT_PORTAL],
    declarations: declarations ?? ('tell' as const),
    withdrawalDays: withdrawalDays ?? WITHDRAWAL_DAYS,
  };
}

/** `auto`, `0` or a duration. */
function shownJitter({ jitterMs = null }: MerchantSettings): string {
  if (jitterMs === null) return 'auto';
  return jitterMs === 0 ? '0' : formatDuration(jitterMs);
}
