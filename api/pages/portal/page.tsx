import type { IntentRecord } from '../../../db/repositories/payments/read.ts';
import type { SubscriptionView } from '../../../db/repositories/subscriptions/row.ts';
import type { PortalAction } from '../../../domain/subscription/portal.ts';
import { allowedActions } from '../../../domain/subscription/portal.ts';
import type { PortalRight } from '../../../domain/subscription/portal.ts';
import { nextChargeAt } from '../../../domain/subscription/charge-time.ts';
import { cancelAt, isBilled, nextAmountMinor } from '../../../domain/subscription/state.ts';
import type { Language } from '../../../domain/language/language.ts';
import { cardText } from '../../../domain/language/card-text.ts';
import { nextPaymentLines } from '../../../domain/language/receipt-lines.ts';
import { productText } from '../shared/receipt.ts';
import { OwnForm, RowList } from '../shared/views.tsx';
import type { ListRow } from '../shared/views.tsx';

/** `nowAt`: by the test clock of the subscription, if it has one. */
export interface ShownSubscription {
  readonly subscription: SubscriptionView;
  readonly nowAt: number;
}

export interface PortalProps {
  readonly language: Language;
  readonly merchantName: string;
  readonly rights: readonly PortalRight[];
  readonly home: string;
  readonly formToken: string;
  readonly returnUrl: string | null;
  readonly subscriptions: readonly ShownSubscription[];
  readonly payments: readonly IntentRecord[];
  /** Returns the link on which the payer replaces the card of a subscription. */
  readonly cardLink: (subscription: SubscriptionView) => string;
}

export const ACTION_TEXTS = {
  cancel: 'cancelSubscription',
  keep: 'keepSubscription',
  pause: 'pauseSubscription',
  resume: 'resumeSubscription',
} as const satisfies Record<PortalAction, string>;

export function PortalPage(props: PortalProps) {
  const { language, merchantName: name, subscriptions, payments, home, returnUrl } = props;
  const { say, date, money } = language;
  return (
    <>
      <h1>{say('portalTitle', { name })}</h1>
      {subscriptions.length === 0 && <p>{say('noSubscription')}</p>}
      {subscriptions.map((shown) => (
        <Subscription {...props} {...shown} />
      ))}
      {payments.length > 0 && (
        <section class="card">
          <h2>{say('yourPayments')}</h2>
          <ul>
            {payments.map(({ id, intent, settledAt }) => (
              <li>
                <a href={`${home}/receipt/${id}`}>
                  {say('amountOn', {
                    amount: money(intent.amountMinor, intent.currency),
                    date: date(settledAt ?? intent.createdAt),
                  })}
                </a>
              </li>
            ))}
          </ul>
          <p class="soft small">{say('datesInUtc')}</p>
        </section>
      )}
      {returnUrl !== null && (
        <p class="leave">
          <a href={returnUrl}>{say('returnTo', { name })}</a>
        </p>
      )}
    </>
  );
}

function Subscription(props: PortalProps & ShownSubscription) {
  const { language, home, formToken, rights, cardLink, subscription, nowAt } = props;
  const { say, quote } = language;
  const { state } = subscription;
  const name = productText(subscription).productName;
  const actions = allowedActions(state, rights, nowAt);
  return (
    <section class="card">
      <h2 dir="auto">{name === null ? say('subscription') : quote(name)}</h2>
      <RowList language={language} rows={subscriptionRows(language, subscription)} />
      {rights.includes('card') && isBilled(state.status) && (
        <p>
          <a href={cardLink(subscription)}>{say('changeCard')}</a>
        </p>
      )}
      {actions.map((action) =>
        action === 'cancel' ? (
          <p>
            <a href={`${home}/${subscription.id}/cancel`}>{say(ACTION_TEXTS.cancel)}</a>
          </p>
        ) : (
          <OwnForm
            action={`${home}/${subscription.id}/${action}`}
            formToken={formToken}
            button={say(ACTION_TEXTS[action])}
            isQuiet={action === 'pause'}
          />
        ),
      )}
    </section>
  );
}

function subscriptionRows(
  language: Language,
  { state, paymentMethod }: SubscriptionView,
): ListRow[] {
  const { say, date, money } = language;
  const endAt = cancelAt(state);
  const nextAt = nextChargeAt(state);
  const amount = money(nextAmountMinor(state), state.terms.currency);
  const row = (label: string, text: string): ListRow => ({ label, text, isDated: true });
  const isPaused = state.status === 'PAUSED' && nextAt === null && endAt === null;
  return [
    ...(paymentMethod
      ? [{ label: say('cardLabel'), text: cardText(language, paymentMethod) }]
      : []),
    ...nextPaymentLines(language, { amount, at: nextAt }),
    ...(isPaused ? [{ label: say('nextPayment'), text: say('paused') }] : []),
    ...(endAt === null ? [] : [row(say('endsOn'), date(endAt))]),
    ...(state.status === 'ENDED' ? [{ label: say('nextPayment'), text: say('ended') }] : []),
  ];
}
