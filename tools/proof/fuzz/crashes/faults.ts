import { ApplicationFailure } from '@temporalio/common';
import { newId } from '../../../../domain/ids.ts';
import type { IdPrefix } from '../../../../domain/ids.ts';
import { Random } from '../../chaos/random.ts';
import { ActivityCall } from './activity-call.ts';
import type { CallOwner, Fate, RequestFate } from './activity-call.ts';
import type { ActivityTask, Resolution } from './execution.ts';
import type { WorkResult } from './workflow-run.ts';
import type { World } from './world.ts';

export const TALLY = {
  commands: 0,
  charges: 0,
  paid: 0,
  limited: 0,
  notices: 0,
  crashes: 0,
  zombies: 0,
  'lost results': 0,
  reorders: 0,
  'lost requests': 0,
};
export type Tally = typeof TALLY;

/** A broken promise, with what shows it. */
export class Violation extends Error {}

/** The faults of one life: of its workers, of its requests to the gateway, and of its time. */
export abstract class Faults implements CallOwner {
  readonly log: string[] = [];
  subscriptionId = '';
  protected nowAt: number;
  protected random = new Random(0);
  protected isCalm = false;
  protected isOutage = false;
  /** Orders that an activity has begun, such as the refund of a late charge. */
  protected readonly orders: { kind: string; order: object }[] = [];
  protected zombies: { call: ActivityCall; name: string }[] = [];
  protected readonly late: (() => Promise<unknown>)[] = [];
  protected readonly world: World;
  protected readonly tally: Tally;
  private live: ActivityCall | null = null;
  private readonly sentEvents = new Map<string, string>();

  constructor(world: World, tally: Tally, nowAt: number) {
    this.world = world;
    this.tally = tally;
    this.nowAt = nowAt;
  }

  abstract recheck(): void;

  protected note(text: string): void {
    this.log.push(`${new Date(this.nowAt).toISOString()} ${text}`);
  }

  protected id(prefix: IdPrefix): string {
    return newId(prefix, this.nowAt, (count) => this.bytes(count));
  }

  /** Chooses a word, each as often as it stands in `words`. */
  protected wordOf(words: string): string {
    const all = words.split(' ');
    return all[this.random.between(0, all.length - 1)] ?? '';
  }

  protected bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.random.between(0, 255));
  }

  private fate(): Fate | { kind: 'loses' } {
    const { random } = this;
    if (this.isCalm) return { kind: 'lives' };
    const kind = random.next();
    if (kind < 0.22) return { kind: 'dies', at: random.between(1, 18) };
    if (kind < 0.33) return { kind: 'stalls', at: random.between(1, 12) };
    return kind < 0.4 ? { kind: 'loses' } : { kind: 'lives' };
  }

  protected async perform({ name, input, isLocal }: ActivityTask): Promise<WorkResult> {
    const { world, tally } = this;
    this.nowAt += this.random.between(1, 40);
    const fate = this.fate();
    const isLost = fate.kind === 'loses';
    const call = new ActivityCall(this, isLost ? { kind: 'lives' } : fate);
    this.live = call;
    const outcome = await call.run(() => world.call(name, structuredClone(input)));
    this.live = null;
    if (outcome === 'stalled') {
      tally.zombies += 1;
      this.zombies.push({ call, name });
      const isLate = isLocal && this.random.isTrue(0.3);
      this.note(`${name} stalls; its ${isLate ? 'time is over' : 'worker counts as dead'}`);
      if (!isLate) return 'lost';
      const late = { type: 'local_budget_over', nonRetryable: true };
      return { error: ApplicationFailure.create(late) };
    }
    if (call.isDead || isLost) {
      tally[isLost ? 'lost results' : 'crashes'] += 1;
      this.note(`${name}: ${isLost ? 'result lost' : `worker dies at effect ${call.effects}`}`);
      return 'lost';
    }
    if (name === 'chargeAttempt') tally.charges += 1;
    const result = checked(name, outcome);
    if (name === 'wakeStream') return result;
    const text = 'error' in result ? result.error.message : JSON.stringify(result.value);
    this.note(`${name}: ${text.slice(0, 90)}`);
    return result;
  }

  async betweenEffects(call: ActivityCall): Promise<void> {
    if (call !== this.live || !this.random.isTrue(0.1)) return;
    await this.continueZombie(this.random.between(1, 8));
  }

  protected async continueZombie(effects: number): Promise<void> {
    const [zombie] = this.zombies.splice(this.random.between(0, this.zombies.length - 1), 1);
    if (!zombie) return;
    const outcome = await zombie.call.continue(effects);
    if (outcome === 'stalled') this.zombies.push(zombie);
    else checked(zombie.name, outcome);
    this.note(`a stalled ${zombie.name} goes on${outcome === 'stalled' ? '' : ' and ends'}`);
  }

  requestFate(operation: string): RequestFate {
    if (this.isCalm || !this.random.isTrue(this.isOutage ? 0.6 : 0.05)) return 'answered';
    this.tally['lost requests'] += 1;
    const fate = this.random.pick(['unanswered', 'not_arrived', 'late'] as const);
    this.note(`${operation}: ${fate}`);
    return fate === 'late' && operation !== 'charge' ? 'unanswered' : fate;
  }

  arriveLater(request: () => Promise<unknown>): void {
    this.late.push(request);
  }

  protected async arrive(): Promise<void> {
    const [request] = this.late.splice(0, 1);
    if (!request) return;
    this.note('a late request arrives');
    await request().catch(() => undefined);
  }

  order(kind: string, order: object): void {
    this.orders.push({ kind, order: { ...order } });
  }

  /** A sent event never changes, and no other event takes its number. */
  async wakeStream(): Promise<void> {
    const events = await this.world.sql<{ sequence: string; text: string }[]>`
      select sequence, id || ' ' || body as text from outbox_event
      where stream_id = ${this.subscriptionId} order by sequence`;
    for (const { sequence, text } of events) {
      const sent = this.sentEvents.get(sequence) ?? text;
      if (sent !== text)
        throw new Violation(`event ${sequence} was sent as ${sent}, then as ${text}`);
      this.sentEvents.set(sequence, text);
    }
  }
}

/** An activity may fail only because the gateway did not answer. Every other error is a bug. */
function checked(name: string, outcome: Resolution): Exclude<WorkResult, 'lost'> {
  if (!('error' in outcome)) return outcome;
  const { error } = outcome;
  if (error instanceof ApplicationFailure && error.type === 'outcome_unknown') return { error };
  throw new Violation(`${name} failed: ${error.stack}`);
}
