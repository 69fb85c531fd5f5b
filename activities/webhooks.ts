import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeDueLanes } from '../db/repositories/deliveries.ts';
import type { LaneOverview } from '../db/repositories/deliveries.ts';
import { createPlaces } from './endpoint-places.ts';
import { deliverLane } from './webhook-lane.ts';
import type { LaneDeps, Turn } from './webhook-lane.ts';
import { createWebhookSender } from './webhook-sender.ts';

export interface WebhookDeps extends Omit<LaneDeps, 'send' | 'places'> {
  /** Has the stream's workflow look soon. Never throws. */
  wakeStream: (stream: { merchantId: string; streamId: string }) => Promise<void>;
  allowLoopback: boolean;
}

export interface DeliverPendingInput {
  merchantId: string;
  streamId: string;
  /** The calling workflow's clock, in real time: what is due is judged by it. */
  nowAt: number;
  /** Have the stream's workflow woken when something is left: true for everybody but itself. */
  handOver: boolean;
}

export interface DeliverPendingResult {
  /** Deliveries still pending, those that somebody else is sending included. */
  remaining: number;
  /** When to look again; null when nothing is pending. */
  nextDelayMs: number | null;
}

export type WebhookActivities = ReturnType<typeof createWebhookActivities>;

/** With the last send's 15 s and its recording this stays below every caller's 60 s. */
const TURN_MS = 20_000;
/** Longer than a turn, its last send and the statements around it; it ends only the lanes of the dead. */
const LEASE_MS = 45_000;
/** While a send takes long, events that come in for other configurations are looked for this often. */
const LOOK_AGAIN_MS = 1_000;
/** Before trying again what was due and could not be taken or sent. */
const TRY_AGAIN_MS = 1_000;
/** Requests in flight to one configuration from this process. Design §5. */
const PLACES_PER_CONFIGURATION = 8;

export function createWebhookActivities(deps: WebhookDeps) {
  const { wakeStream, allowLoopback, ...rest } = deps;
  const laneDeps: LaneDeps = {
    ...rest,
    send: createWebhookSender({ allowLoopback }),
    places: createPlaces(PLACES_PER_CONFIGURATION),
  };

  return {
    /**
     * Sends what is due of a stream: to each configuration in sequence order, to all of them side by
     * side. Begins nothing after 20 s and is over within 40. A lane that somebody else holds is left
     * to its holder, who looks again after giving it free, so an event committed meanwhile is seen by
     * one of the two. Throws only when the database fails or a secret cannot be opened, after the
     * other configurations had their turn.
     *
     * Idempotent: what is delivered is not sent again; what was sent by a process that died before
     * recording it is (at least once). Retryable always. Rule: D-54.
     */
    async deliverPending(input: DeliverPendingInput): Promise<DeliverPendingResult> {
      const lanes = await deliverStream(laneDeps, input, startTurn(input.nowAt));
      const waits = lanes.map((lane) => waitFor(lane));
      const result = {
        remaining: lanes.reduce((sum, lane) => sum + lane.pending, 0),
        nextDelayMs: waits.length === 0 ? null : Math.ceil(Math.min(...waits)),
      };
      if (input.handOver && lanes.some((lane) => lane.heldForMs === null)) {
        await wakeStream({ merchantId: input.merchantId, streamId: input.streamId });
      }
      return result;
    },
  };
}

function startTurn(nowAt: number): Turn {
  const startedAt = performance.now();
  const elapsedMs = (): number => Math.floor(performance.now() - startedAt);
  return {
    owner: randomUUID(),
    now: () => nowAt + elapsedMs(),
    isOver: () => elapsedMs() > TURN_MS,
  };
}

/** Delivers until nothing is due or the turn is over; answers what is left. */
async function deliverStream(
  deps: LaneDeps,
  { merchantId, streamId }: DeliverPendingInput,
  turn: Turn,
): Promise<LaneOverview[]> {
  const running = new Map<string, Promise<void>>();
  const setAside: string[] = [];
  const errors: unknown[] = [];

  const run = async (configId: string): Promise<void> => {
    try {
      const moved = await deliverLane(deps, { merchantId, streamId, configId }, turn);
      if (moved === 0) setAside.push(configId);
    } catch (error) {
      // Its lease is still there, so this turn does not take the lane again.
      errors.push(error);
    } finally {
      running.delete(configId);
    }
  };
  const look = () =>
    takeDueLanes(
      deps.db,
      { merchantId, streamId },
      {
        owner: turn.owner,
        leaseMs: LEASE_MS,
        nowAt: turn.now(),
        except: turn.isOver() ? 'all' : setAside,
      },
    );

  try {
    for (;;) {
      // A lane that ends during a look was still held when that was answered: who found it held has
      // left it to us, so only a look that began without any is the last.
      const isLast = running.size === 0;
      const lanes = await look();
      for (const lane of lanes) if (lane.isTaken) running.set(lane.configId, run(lane.configId));
      if (running.size > 0) {
        await oneEndsOr(running.values(), turn.isOver() ? null : LOOK_AGAIN_MS);
      } else if (isLast) {
        if (errors.length > 0) throw errors[0];
        return lanes;
      }
    }
  } finally {
    // A look that failed must not leave sends behind that nobody waits for.
    await Promise.all(running.values());
  }
}

async function oneEndsOr(
  running: Iterable<Promise<void>>,
  timeoutMs: number | null,
): Promise<void> {
  if (timeoutMs === null) return Promise.race(running);
  const timeout = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: timeout.signal }).catch(() => undefined);
  await Promise.race([...running, late]);
  timeout.abort();
}

function waitFor(lane: LaneOverview): number {
  if (lane.heldForMs !== null) return lane.heldForMs;
  return lane.dueInMs === 0 ? TRY_AGAIN_MS : lane.dueInMs;
}
