import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayChoice } from '../../../cli/command-line/options.ts';
import { cardOf, PAYING_CARD } from '../../scripts/client/payer.ts';
import type { TypedCard } from '../../scripts/client/payer.ts';
import { payUntilAnswered } from '../../scripts/client/retrying-payer.ts';
import type { BankAnswer, PageEnd } from '../../scripts/client/retrying-payer.ts';
import { DEFINITE_WITHIN_MS } from './retrying-client.ts';
import type { RetryingClient } from './retrying-client.ts';
import type { Random } from './random.ts';

const BETWEEN_LOOKS_MS = 300;

/** Test clocks run for years, and these cards must pay until the end. */
const LASTING_CARD = { ...PAYING_CARD, expiry: '12 / 99' };
const OTHER_LASTING_CARD = { ...LASTING_CARD, number: '5555 5555 5555 4444' };
/** It can be saved, and every charge is declined. */
const DECLINED_CARD = cardOf('4000 0000 0000 0341');
/** Its bank wants the payer to confirm each charge. The sandbox has no confirmation, and declines such a charge. */
const ALWAYS_ASKED = cardOf('4000 0027 6000 3184');
/** Its bank wants one confirmation, when it is saved. */
const ASKED_ONCE = cardOf('4000 0025 0000 3155');

const ASKED_CARDS: Readonly<Record<GatewayChoice, readonly [TypedCard, ...TypedCard[]]>> = {
  sandbox: [ALWAYS_ASKED],
  'stripe-double': [ASKED_ONCE, ALWAYS_ASKED, ALWAYS_ASKED],
};

/** Chance for each command of the merchant. Payers of a subscription that is paid up come less often. */
const COMES_CHANCE = 0.6;
const COMES_IF_PAID_CHANCE = 0.35;
const ASKED_AT_CHECKOUT_CHANCE = 0.2;
/** Shares of the new cards of a subscription that is paid up. An UNPAID one gets a card that pays more often. */
const DECLINED_CHANCE = 0.35;
const ASKED_CHANCE = 0.35;
const PAYS_IF_UNPAID_CHANCE = 0.6;
const GIVES_UP_CHANCE = 0.5;
/** Range in ms of the time that a payer takes at the bank. */
const AT_BANK_MS = [0, 15_000] as const;
const BANK_ANSWERS: readonly [BankAnswer, ...BankAnswer[]] = [
  'complete',
  'complete',
  'complete',
  'come back',
  'fail',
  'other card',
];

/** The payers of a run. Their random numbers do not change the subscriptions and commands of a seed. */
export class Payers {
  reloads = 0;
  savedCards = 0;
  /** The ends of update pages. */
  readonly ends: Record<PageEnd, number> = {
    paid: 0,
    saved: 0,
    declined: 0,
    closed: 0,
    'too late': 0,
  };
  readonly atBank: Record<BankAnswer, number> = {
    complete: 0,
    fail: 0,
    'come back': 0,
    'other card': 0,
  };
  private readonly random: Random;
  private readonly gateway: GatewayChoice;

  constructor(random: Random, gateway: GatewayChoice) {
    this.random = random;
    this.gateway = gateway;
  }

  /** Pays the checkout. `too late`: the clock advanced past the expiry of the checkout before it was paid. */
  payCheckout(fwdUrl: string): Promise<PageEnd> {
    const isAsked = this.random.isTrue(ASKED_AT_CHECKOUT_CHANCE);
    const card = isAsked ? this.random.pick(ASKED_CARDS[this.gateway]) : LASTING_CARD;
    return this.visit(fwdUrl, card, () => LASTING_CARD);
  }

  /** In some calls gives a new card, or confirms the owed payment, on the update page, if the subscription has one. */
  async mayChangeCard(client: RetryingClient, subscriptionId: string): Promise<void> {
    const { random } = this;
    if (!random.isTrue(COMES_CHANCE)) return;
    const answer = await client.get(`/subscription/get-subscription/${subscriptionId}`);
    const read = JSON.parse(answer?.body ?? '{}') as Record<string, string | undefined>;
    const { updatePaymentMethodLink: link, status } = read;
    const isUnpaid = status === 'UNPAID';
    if (link === undefined || !(isUnpaid || random.isTrue(COMES_IF_PAID_CHANCE))) return;
    const end = await this.visit(link, this.pickCard(isUnpaid), () =>
      random.isTrue(GIVES_UP_CHANCE) ? null : LASTING_CARD,
    );
    this.ends[end] += 1;
  }

  private pickCard(isUnpaid: boolean): TypedCard {
    const { random } = this;
    const good = random.pick([LASTING_CARD, OTHER_LASTING_CARD]);
    if (isUnpaid && random.isTrue(PAYS_IF_UNPAID_CHANCE)) return good;
    const dice = random.next();
    if (dice < DECLINED_CHANCE) return DECLINED_CARD;
    return dice < DECLINED_CHANCE + ASKED_CHANCE ? random.pick(ASKED_CARDS[this.gateway]) : good;
  }

  private async visit(
    link: string,
    card: TypedCard,
    nextCard: () => TypedCard | null,
  ): Promise<PageEnd> {
    const { random } = this;
    const { end } = await payUntilAnswered(link, {
      address: `10.${random.between(0, 255)}.${random.between(0, 255)}.${random.between(1, 254)}`,
      withinMs: DEFINITE_WITHIN_MS,
      betweenLooksMs: BETWEEN_LOOKS_MS,
      card,
      takesSavedCard: () => {
        this.savedCards += 1;
        return true;
      },
      nextCard,
      reloadsBrokenPage: () => random.isTrue(0.5),
      onRepeat: () => (this.reloads += 1),
      atBank: async () => {
        const answer = random.pick(BANK_ANSWERS);
        await sleep(random.between(...AT_BANK_MS));
        this.atBank[answer] += 1;
        return answer;
      },
    });
    return end;
  }
}
