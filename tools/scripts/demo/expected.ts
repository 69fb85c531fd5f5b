// The expected events and states of the demo's subscription in its year, exact to the millisecond and the cent. No
// value here is computed from the service's answers.

export interface ExpectedEvent {
  readonly eventType: string;
  readonly eventTime: number;
  readonly status: string;
  readonly amount: number;
  readonly errorCode?: string | null;
  readonly cycleNumber?: number;
  readonly remainingCycleCount?: number;
  readonly nextPaymentDate?: number | null;
  readonly currentPeriodEnd?: number | null;
}

export interface ExpectedSubscription {
  readonly status: string;
  readonly remainingCycleCount: number;
  readonly nextPaymentDate: number | null;
  readonly currentPeriodEnd: number | null;
}

/** After an advance to `to`, exactly `events` must have arrived, and the API must return `subscription`. */
export interface Step {
  readonly to: number;
  readonly events: readonly ExpectedEvent[];
  readonly subscription: ExpectedSubscription;
  readonly declineCode?: string;
  readonly note?: string;
}

/** Noon in UTC: the date is the same in almost every time zone. */
const noon = (date: string): number => Date.parse(`${date}T12:00:00.000Z`);

export const STARTS_AT = noon('2027-01-24');
const AMOUNT = 1_999;

export const ORDER = {
  amount: AMOUNT,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  trialPeriodCount: 7,
  trialPeriodInterval: 'DAY',
} as const;

const TRIAL_ENDS_AT = noon('2027-01-31');

function ofTrial(eventType: string, status: string, endsAt: number | null): ExpectedEvent {
  return {
    eventType,
    eventTime: STARTS_AT,
    status,
    amount: AMOUNT,
    remainingCycleCount: 12,
    nextPaymentDate: endsAt,
    currentPeriodEnd: endsAt,
  };
}

/** The expected events of the creation of the subscription and of the first opening of its page, before the payment. */
export const BEFORE_PAYING: readonly ExpectedEvent[] = [
  ofTrial('subscription.created', 'CREATED', null),
  ofTrial('subscription.checkout_opened', 'CREATED', null),
];

export const TRIALING: Step = {
  to: STARTS_AT,
  events: [ofTrial('subscription.trialing', 'TRIALING', TRIAL_ENDS_AT)],
  subscription: {
    status: 'TRIALING',
    remainingCycleCount: 12,
    nextPaymentDate: TRIAL_ENDS_AT,
    currentPeriodEnd: TRIAL_ENDS_AT,
  },
};

const DECLINED_AT = noon('2027-08-31');
const RETRIED_AT = Date.parse('2027-08-31T16:00:00.000Z');
const UNPAID: ExpectedSubscription = {
  status: 'UNPAID',
  remainingCycleCount: 5,
  nextPaymentDate: RETRIED_AT,
  currentPeriodEnd: DECLINED_AT,
};

export const MONTHS: readonly Step[] = [
  paid(1, '2027-01-31', '2027-02-28', { enters: 'subscription.active' }),
  paid(2, '2027-02-28', '2027-03-31'),
  paid(3, '2027-03-31', '2027-04-30'),
  paid(4, '2027-04-30', '2027-05-31'),
  paid(5, '2027-05-31', '2027-06-30'),
  paid(6, '2027-06-30', '2027-07-31'),
  paid(7, '2027-07-31', '2027-08-31'),
  {
    to: DECLINED_AT,
    declineCode: 'insufficient_funds',
    note: 'the bank will decline the next charge: insufficient_funds',
    events: [
      intent('intent.created', DECLINED_AT, 'CREATED', null),
      intent('intent.failed', DECLINED_AT, 'FAILED', 'insufficient_funds'),
      { ...UNPAID, eventType: 'subscription.unpaid', eventTime: DECLINED_AT, amount: AMOUNT },
    ],
    subscription: UNPAID,
  },
  paid(8, '2027-08-31', '2027-09-30', {
    enters: 'subscription.active',
    retriedAt: RETRIED_AT,
    note: 'the automatic retry, four hours later',
  }),
  paid(9, '2027-09-30', '2027-10-31'),
  paid(10, '2027-10-31', '2027-11-30'),
  paid(11, '2027-11-30', '2027-12-31'),
  paid(12, '2027-12-31', '2028-01-31', { enters: 'subscription.ended' }),
];

export const LONG_AFTER = noon('2029-01-31');

function paid(
  cycleNumber: number,
  dueOn: string,
  untilDate: string,
  how: { enters?: string; retriedAt?: number; note?: string } = {},
): Step {
  const at = how.retriedAt ?? noon(dueOn);
  const isLast = cycleNumber === 12;
  const subscription = {
    status: isLast ? 'ENDED' : 'ACTIVE',
    remainingCycleCount: 12 - cycleNumber,
    nextPaymentDate: isLast ? null : noon(untilDate),
    currentPeriodEnd: noon(untilDate),
  };
  const events: ExpectedEvent[] = [
    intent('intent.success', at, 'SUCCESS', null),
    {
      ...subscription,
      eventType: 'subscription.cycle_charged',
      eventTime: at,
      amount: AMOUNT,
      cycleNumber,
    },
  ];
  if (how.retriedAt === undefined) {
    events.unshift(intent('intent.created', at, 'CREATED', null));
  }
  if (how.enters !== undefined) {
    events.push({ ...subscription, eventType: how.enters, eventTime: at, amount: AMOUNT });
  }
  return { to: at, events, subscription, ...(how.note === undefined ? {} : { note: how.note }) };
}

function intent(
  eventType: string,
  eventTime: number,
  status: string,
  errorCode: string | null,
): ExpectedEvent {
  return { eventType, eventTime, status, amount: AMOUNT, errorCode };
}
