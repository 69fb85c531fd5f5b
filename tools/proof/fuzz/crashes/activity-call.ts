import { AsyncLocalStorage } from 'node:async_hooks';
import { drizzle } from 'drizzle-orm/postgres-js';
import type { Sql } from 'postgres';
import { createDb } from '../../../../db/client.ts';
import type { Db } from '../../../../db/client.ts';
import type { PaymentGateway } from '../../../../gateways/port.ts';
import type { Resolution } from './execution.ts';

/**
 * The end of an activity's worker, at its effect number `at`: a statement, BEGIN, COMMIT, or a request to the gateway
 * before or after it. `stalls`: the activity stands still there, outside of a transaction, and may go on later.
 */
export type Fate = { kind: 'lives' } | { kind: 'dies' | 'stalls'; at: number };

/** What happens to a request to the gateway. `late`: it arrives after its sender has given up. */
export type RequestFate = 'answered' | 'unanswered' | 'not_arrived' | 'late';

/** What a call asks the life that it belongs to. */
export interface CallOwner {
  requestFate(operation: string): RequestFate;
  arriveLater(request: () => Promise<unknown>): void;
  /** Lets other activities go on between two effects of this one. */
  betweenEffects(call: ActivityCall): Promise<void>;
  wakeStream(): Promise<void>;
  order(kind: string, order: object): void;
  recheck(): void;
}

const UNANSWERED = { kind: 'unknown', reason: 'no answer' } as const;
const calls = new AsyncLocalStorage<ActivityCall>();
export const ownerOfCall = (): CallOwner | undefined => calls.getStore()?.owner;

/** One execution of an activity by one worker. */
export class ActivityCall {
  readonly owner: CallOwner;
  isDead = false;
  effects = 0;
  private readonly fate: Fate;
  private effectsLeft = Infinity;
  private goOn: () => void = () => undefined;
  private onStall: (stalled: 'stalled') => void = () => undefined;
  private ended: Promise<Resolution> | null = null;

  constructor(owner: CallOwner, fate: Fate) {
    this.owner = owner;
    this.fate = fate;
    if (fate.kind === 'stalls') this.effectsLeft = fate.at;
  }

  /** Runs `activity` until it ends or stands still. */
  run(activity: () => Promise<unknown>): Promise<Resolution | 'stalled'> {
    return this.untilStalled(() => {
      this.ended = calls.run(this, activity).then(
        (value) => ({ value }),
        (error: Error) => ({ error }),
      );
    });
  }

  /** Lets a stalled activity execute `effects` more effects. */
  continue(effects: number): Promise<Resolution | 'stalled'> {
    this.effectsLeft = effects;
    return this.untilStalled(() => this.goOn());
  }

  effect(): void {
    this.effects += 1;
    this.effectsLeft -= 1;
    const { fate } = this;
    if (fate.kind === 'dies' && this.effects >= fate.at) this.isDead = true;
    // The activity may catch the error, so each later effect fails, too.
    if (this.isDead) throw new Error('the worker is dead');
  }

  async gate(): Promise<void> {
    await this.owner.betweenEffects(this);
    if (this.effectsLeft > 0) return;
    const released = new Promise<void>((resolve) => (this.goOn = resolve));
    this.onStall('stalled');
    await released;
  }

  private async untilStalled(begin: () => void): Promise<Resolution | 'stalled'> {
    const stalled = new Promise<'stalled'>((resolve) => (this.onStall = resolve));
    begin();
    return Promise.race([this.ended ?? stalled, stalled]);
  }
}

/** The database of the activities, whose calls may die at each statement and stand still outside of transactions. */
export function openActivityDb(url: string, poolSize: number) {
  const beforeEach = (): void => calls.getStore()?.effect();
  const handle = createDb({ url, poolSize, applicationName: 'fuzz-activities', beforeEach });
  const { $client: client } = handle.db as Db & { $client: Sql };
  const gate = () => calls.getStore()?.gate();
  type Values = Parameters<Sql['unsafe']>[1];
  const gated = {
    options: client.options,
    unsafe: (text: string, values?: Values) => ({
      // oxlint-disable-next-line unicorn/no-thenable -- Drizzle awaits a statement, and the driver sends it only then
      then: (...handlers: Parameters<Promise<unknown>['then']>) =>
        (async () => {
          await gate();
          return client.unsafe(text, values);
        })().then(...handlers),
      values: async () => {
        await gate();
        return client.unsafe(text, values).values();
      },
    }),
    begin: async (work: Parameters<Sql['begin']>[1]) => {
      await gate();
      return client.begin(work);
    },
  };
  return { db: drizzle({ client: gated as unknown as Sql }), close: () => handle.close() };
}

const OPERATIONS = [
  'prepare',
  'charge',
  'lookup',
  'withdraw',
  'saveMethod',
  'refund',
  'lookupRefund',
] as const;

/** The gateway of the activities: requests get lost or arrive late, and a worker may die before and after each. */
export function unreliable(gateway: PaymentGateway): PaymentGateway {
  const changed: Record<string, unknown> = { ...gateway };
  for (const name of OPERATIONS) {
    const operation = gateway[name] as ((request: unknown) => Promise<unknown>) | null;
    if (operation !== null) {
      changed[name] = (request: unknown) => send(name, () => operation.call(gateway, request));
    }
  }
  return changed as unknown as PaymentGateway;
}

async function send(operation: string, request: () => Promise<unknown>): Promise<unknown> {
  const call = calls.getStore();
  if (!call) return request();
  call.effect();
  await call.gate();
  const fate = call.owner.requestFate(operation);
  if (fate === 'late') call.owner.arriveLater(() => calls.exit(request));
  const answer = fate === 'answered' || fate === 'unanswered' ? await request() : UNANSWERED;
  call.effect();
  await call.gate();
  return fate === 'answered' ? answer : UNANSWERED;
}
