import { isDeepStrictEqual } from 'node:util';
import { randomToken } from '../../../../domain/ids.ts';
import { ApplicationFailure } from '@temporalio/common';
import { insertCustomer } from '../../../../db/repositories/customers/customers.ts';
import { createSubscription } from '../../../../db/repositories/subscriptions/create.ts';
import { ensureUpdateSession } from '../../../../db/repositories/subscriptions/method-updates.ts';
import { loadSnapshot } from '../../../../db/repositories/subscriptions/row.ts';
import type { Command, CommandResult } from '../../../../domain/subscription/commands.ts';
import type { SubscriptionState } from '../../../../domain/subscription/state.ts';
import type { SubscriptionInput } from '../../../../workflows/subscription/messages.ts';
import { Random } from '../../chaos/random.ts';
import { ActivityCall } from './activity-call.ts';
import type { UpdateResponse } from './execution.ts';
import { Faults, Violation } from './faults.ts';
import type { Tally } from './faults.ts';
import { WorkflowRun } from './workflow-run.ts';
import { post } from './gateways.ts';
import type { World } from './world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Later than the clock of Postgres, so that `verify` takes no cycle for overdue. */
const START = Date.parse('2035-01-31T10:00:00Z');
const TASKS_MAX = 400;
const CODES =
  'card_declined card_declined insufficient_funds insufficient_funds stolen_card fraudulent authentication_required';

/** Of each kind as often as it stands here. A run refuses most of the others. */
const COMMANDS: Record<SubscriptionState['status'], string> = {
  CREATED: 'completeCheckout',
  TRIALING: 'edit move move move replacePaymentMethod pause resume',
  ACTIVE:
    'edit edit move move move move replacePaymentMethod replacePaymentMethod pause endWithPeriod resume resume resume',
  UNPAID:
    'manualRetry manualRetry manualRetry manualRetry move move replacePaymentMethod replacePaymentMethod authenticatePayment pause edit edit cancel',
  PAUSED: 'unpause unpause unpause unpause unpause unpause resume edit manualRetry endWithPeriod',
  ENDED: 'cancel manualRetry',
};
const STEPS =
  'send send send send send wait wait wait wait wait wait decline decline outage bank arrive zombie recheck restart repeat';

export interface LifeOptions {
  readonly world: World;
  readonly merchantId: string;
  readonly seed: number;
  readonly number: number;
  readonly steps: number;
  /** Steps that are left out, to find a shorter life with the same violation. */
  readonly without: ReadonlySet<number>;
  readonly tally: Tally;
}

/** One subscription with its merchant, payer, bank and workers. The seed decides everything. */
export class Life extends Faults {
  private readonly commands: Command[] = [];
  private readonly waiting = new Map<string, Command>();
  private readonly answers = new Map<string, CommandResult>();
  private sessionId = '';
  private customerId = '';
  private sends = 0;
  private run: WorkflowRun | null = null;
  private readonly options: LifeOptions;

  constructor(options: LifeOptions) {
    super(options.world, options.tally, START);
    this.options = options;
    this.random = this.randomOf(0);
  }

  async toTheEnd(): Promise<void> {
    const run = await this.create();
    await this.send(run);
    await this.work(run);
    for (let step = 1; step <= this.options.steps && !run.isEnded; step += 1) {
      if (this.options.without.has(step)) continue;
      this.random = this.randomOf(step);
      await this.step(run);
      await this.work(run);
    }
    this.random = this.randomOf(this.options.steps + 1);
    await this.comeToRest(run);
    await this.checkAnswers();
  }

  private randomOf(step: number): Random {
    const { seed, number } = this.options;
    return new Random(seed * 1_000_003 + number * 1_009 + step);
  }

  private get ref() {
    return { merchantId: this.options.merchantId, subscriptionId: this.subscriptionId };
  }

  private async create(): Promise<WorkflowRun> {
    const { random } = this;
    const { world, merchantId } = this.options;
    const [id, customerId] = [this.id('sub'), this.id('cus')];
    [this.subscriptionId, this.customerId, this.sessionId] = [id, customerId, this.id('cs')];
    const [email, createdAt] = ['ada@example.com', this.nowAt];
    const details = { name: 'Ada', email };
    const hasTrial = random.isTrue(0.3);
    const terms = {
      amountMinor: random.between(200, 9_999),
      currency: 'USD',
      interval: random.pick(['DAY', 'WEEK', 'MONTH'] as const),
      intervalCount: 1,
      cycleCount: random.between(2, 9),
      upfrontAmountMinor: !hasTrial && random.isTrue(0.2) ? 555 : null,
      trial: hasTrial ? ({ interval: 'DAY', count: 7 } as const) : null,
    };
    const checkout = { id: this.sessionId, token: randomToken((count) => this.bytes(count)) };
    await world.db.transaction(async (tx) => {
      await insertCustomer(tx, { merchantId, id: customerId, details, createdAt });
      const dates = { createdAt, checkoutExpiresAt: createdAt + 60 * DAY, testClockId: null };
      const subscription = { subscriptionId: id, merchantId, customerId, terms, ...dates };
      const callbackUrl = 'https://merchant.example';
      const texts = { description: null, cancelUrl: null, phoneNumberRequired: false };
      await createSubscription(
        tx,
        subscription,
        { customerDetails: details, callbackUrl, ...texts },
        checkout,
      );
    });
    return new WorkflowRun(
      {
        code: world.code,
        now: () => this.nowAt,
        answered: (answer) => this.answered(answer),
        isHeartbeatDue: () => this.random.isTrue(0.2),
      },
      await this.input(),
    );
  }

  /** The argument of a run that starts from the row. */
  private async input(): Promise<SubscriptionInput> {
    const snapshot = await loadSnapshot(this.world.db, this.ref);
    if (!snapshot) throw new Error('no subscription');
    const { state, entries } = snapshot;
    return { state, entries, clock: null, deliver: true, needsResync: false };
  }

  private async step(run: WorkflowRun): Promise<void> {
    const { random } = this;
    switch (this.wordOf(STEPS)) {
      case 'send':
        for (let count = random.pick([1, 1, 2, 3]); count > 0; count -= 1) await this.send(run);
        // The commands and a due timer reach the worker in the same workflow task.
        if (random.isTrue(0.4)) this.wait(run, true);
        return;
      case 'wait':
        return this.wait(run, random.isTrue(0.8));
      case 'decline': {
        const [code, count] = [this.wordOf(CODES), random.between(1, 3)];
        this.note(`the next ${count} charges are declined: ${code}`);
        await this.world.declineNext(this.subscriptionId, code, count);
        return;
      }
      case 'outage':
        this.isOutage = !this.isOutage;
        return this.note(
          this.isOutage ? 'the gateway loses requests' : 'the gateway answers again',
        );
      case 'bank':
        return this.visitBank();
      case 'arrive':
        return this.arrive();
      case 'zombie':
        return this.continueZombie(random.between(1, 12));
      case 'recheck':
        return this.recheck();
      case 'restart':
        if (run.isEnded) return;
        this.note('the workflow starts again from its row');
        return run.start(await this.input());
      default: {
        const command = this.commands[random.between(0, this.commands.length - 1)];
        if (command) this.submit(run, command);
      }
    }
  }

  private wait(run: WorkflowRun, untilTimer: boolean): void {
    const { random, nowAt } = this;
    const { wakesAt } = run;
    const ms = random.pick([MINUTE, HOUR, 5 * HOUR, DAY, 9 * DAY]);
    this.nowAt = untilTimer && Number.isFinite(wakesAt) ? Math.max(nowAt, wakesAt) : nowAt + ms;
    this.note('time has passed');
  }

  private async send(run: WorkflowRun): Promise<void> {
    const { status } = (run.state ?? (await this.input()).state) as SubscriptionState;
    const command = await this.command(this.wordOf(COMMANDS[status]));
    if (!command) return;
    this.tally.commands += 1;
    this.commands.push(command);
    this.submit(run, command);
  }

  private submit(run: WorkflowRun, command: Command): void {
    const { kind: name, ...argument } = command;
    this.sends += 1;
    this.waiting.set(command.commandId, command);
    this.note(`${name} ${JSON.stringify(argument)}`);
    if (!run.isEnded)
      run.jobs.push({ kind: 'update', id: `${command.commandId}#${this.sends}`, name, argument });
  }

  private async command(kind: string): Promise<Command | null> {
    const { random, nowAt } = this;
    const commandId = this.id('cmd');
    const ms = random.pick([MINUTE, 3 * HOUR, DAY, 20 * DAY]) + random.between(0, 5_000);
    switch (kind) {
      case 'edit':
        return { kind, commandId, newAmountMinor: random.between(200, 9_999) };
      case 'move':
        return { kind: 'edit', commandId, newNextPaymentAt: nowAt + ms };
      case 'cancel':
        return { kind, commandId, reason: 'cancelled' };
      case 'endWithPeriod':
        return { kind: 'cancel', commandId, reason: 'cancelled', atPeriodEnd: true };
      case 'pause':
        return { kind, commandId, ...(random.isTrue(0.5) && { resumeAt: nowAt + ms }) };
      case 'unpause':
        return { kind, commandId, newNextPaymentAt: nowAt + ms };
      case 'resume':
      case 'manualRetry':
        return { kind, commandId };
      case 'authenticatePayment':
        return { kind, commandId, checkoutSessionId: await this.openPage() };
      case 'completeCheckout':
      case 'replacePaymentMethod': {
        const checkoutSessionId =
          kind === 'completeCheckout' ? this.sessionId : await this.openPage();
        const token = await this.enterCard(checkoutSessionId);
        if (token === null) return null;
        return { kind, commandId: token, paymentToken: token, checkoutSessionId };
      }
      default:
        throw new Error(`no command ${kind}`);
    }
  }

  private async openPage(): Promise<string> {
    const sessionId = this.id('cs');
    const token = randomToken((count) => this.bytes(count));
    const session = { ...this.ref, sessionId, token, expiresAt: this.nowAt + 90 * DAY };
    await ensureUpdateSession(this.world.db, session, this.nowAt);
    return sessionId;
  }

  private enterCard(session: string): Promise<string | null> {
    const gateway = this.world.gatewayOf(this.options.merchantId);
    const card = { session, customerId: this.customerId, number: this.wordOf(this.world.cards) };
    return this.world.enterCard(gateway, card);
  }

  private answered({ id, ...resolution }: UpdateResponse): void {
    const commandId = id.slice(0, id.indexOf('#'));
    if ('error' in resolution) {
      const type = resolution.error instanceof ApplicationFailure ? resolution.error.type : 'bug';
      this.note(`answer to ${commandId}: ${type}`);
      if (type === 'bug') throw new Violation(`an update failed: ${resolution.error.stack}`);
      // The caller sends the command again.
      if (type !== 'service_unavailable') this.waiting.delete(commandId);
      return;
    }
    const result = resolution.value as CommandResult;
    this.note(`answer to ${commandId}: ${JSON.stringify(result)}`);
    this.waiting.delete(commandId);
    const isRefusedCard = result.kind === 'checkout' && result.outcome === 'declined';
    if (!isRefusedCard) this.answers.set(commandId, result);
  }

  private async visitBank(): Promise<void> {
    const { world } = this.options;
    const [page] = await world.sql<{ url: string }[]>`
      select payer_url as url from payment_attempt a join payment_intent i
        on i.merchant_id = a.merchant_id and i.id = a.intent_id
      where i.subscription_id = ${this.subscriptionId} and payer_url is not null`;
    if (!page) return;
    const outcome = this.random.pick(['complete', 'complete', 'fail']);
    this.note(`the payer at the bank: ${outcome}`);
    await post(page.url, { outcome });
    if (this.random.isTrue(0.7)) this.recheck();
  }

  recheck(): void {
    const { run } = this;
    if (!run || run.isEnded) return;
    this.note('recheck');
    run.jobs.push({ kind: 'signal', name: 'recheck', argument: undefined });
  }

  /** Runs tasks until the run waits for a timer or a message. */
  private async work(run: WorkflowRun): Promise<void> {
    this.run = run;
    for (let tasks = 0; tasks < TASKS_MAX; tasks += 1) {
      const { queued } = run;
      if (run.isEnded) return;
      if (queued && (!run.hasWork || this.random.isTrue(0.5))) {
        await run.runQueued(queued, (task) => this.perform(task));
      } else if (run.hasWork) {
        if ((await run.runTask((task) => this.perform(task))) === 'lost')
          await this.afterCrash(run);
      } else {
        await this.setBankTimes();
        return;
      }
    }
    throw new Violation(`the run does not come to rest after ${TASKS_MAX} tasks`);
  }

  /** The next worker starts later, and the server may give it the waiting updates in another order. */
  private async afterCrash(run: WorkflowRun): Promise<void> {
    this.nowAt +=
      this.random.pick([10, 6_000, 6_000, MINUTE, 3 * HOUR]) + this.random.between(0, 999);
    if (this.random.isTrue(0.4) && !this.isCalm) await this.send(run);
    const updates = run.jobs.filter(({ kind }) => kind === 'update');
    if (updates.length < 2 || this.random.isTrue(0.3)) return;
    this.note('the waiting updates come in the reverse order');
    this.tally.reorders += 1;
    run.reverseUpdates();
  }

  /** Postgres noted real time, from which the payer's time at the bank would be over in this life. */
  private async setBankTimes(): Promise<void> {
    await this.world.sql`
      update payment_attempt a set payer_asked_at = ${new Date(this.nowAt)} from payment_intent i
      where i.merchant_id = a.merchant_id and i.id = a.intent_id
        and i.subscription_id = ${this.subscriptionId} and payer_asked_at < ${new Date(START)}`;
  }

  /** Ends all faults, lets everything late arrive and end, and repeats every command without an answer. */
  private async comeToRest(run: WorkflowRun): Promise<void> {
    this.isCalm = true;
    this.note('all faults end');
    while (this.late.length > 0) await this.arrive();
    while (this.zombies.length > 0) await this.continueZombie(Infinity);
    for (let round = 0; round < TASKS_MAX; round += 1) {
      await this.work(run);
      const { state: row } = await this.input();
      const known = run.state as SubscriptionState | undefined;
      if (run.isEnded || (row.openAttempt === null && this.waiting.size === 0)) break;
      for (const command of this.waiting.values()) this.submit(run, command);
      // The sweep finds a row that its run does not know.
      if (row.openAttempt && row.version !== known?.version) this.recheck();
      const { wakesAt } = run;
      const isTimed = row.openAttempt !== null && Number.isFinite(wakesAt);
      this.nowAt = Math.max(this.nowAt + 1_000, isTimed ? wakesAt : 0);
      if (round === TASKS_MAX - 1) throw new Violation('an attempt or a command stays open');
    }
    // The list grows: a late charge is refunded.
    for (const { kind, order } of this.orders) {
      const step = { ...order, nowAt: this.nowAt, lookups: 1_000 };
      const name = kind === 'refund' ? 'refundPayment' : 'lookForLateCharge';
      await new ActivityCall(this, { kind: 'lives' }).run(() => this.world.call(name, step));
    }
    await this.work(run);
  }

  private async checkAnswers(): Promise<void> {
    const rows = await this.world.sql<{ id: string; result: CommandResult | null }[]>`
      select command_id as id, result from subscription_command
      where subscription_id = ${this.subscriptionId}`;
    const results = new Map(rows.map(({ id, result }) => [id, result]));
    for (const [id, answer] of this.answers) {
      const stored = results.get(id);
      if (isDeepStrictEqual(answer, stored)) continue;
      const [given, recorded] = [JSON.stringify(answer), JSON.stringify(stored)];
      throw new Violation(`the caller of ${id} was answered ${given}, recorded is ${recorded}`);
    }
  }
}
