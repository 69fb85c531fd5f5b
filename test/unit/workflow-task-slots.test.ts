import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { WorkflowTaskSlots } from '../../runtime/workflow-task-slots.ts';

const CONTEXT = {
  slotType: 'workflow',
  taskQueue: 'perennial',
  workerIdentity: 'worker',
  workerBuildId: '',
  isSticky: false,
} as const;

/** Asks for `count` slots, one after another, and notes the numbers of those that were given. */
function ask(slots: WorkflowTaskSlots, count: number, signal?: AbortSignal) {
  const given: number[] = [];
  const refused: number[] = [];
  for (let number = 1; number <= count; number += 1) {
    slots.reserveSlot(CONTEXT, signal ?? new AbortController().signal).then(
      () => given.push(number),
      () => refused.push(number),
    );
  }
  return { given, refused };
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

/** Slots beside callers that are served until `clock.now` is 5,000. */
function besideCallers() {
  const clock = { now: 0 };
  const slots = new WorkflowTaskSlots(() => clock.now);
  slots.serveCaller();
  return { clock, slots };
}

test('without callers forty workflow tasks are executed at once', async () => {
  const slots = new WorkflowTaskSlots();
  const { given } = ask(slots, 42);
  await turn();
  expect(given).toEqual(upTo(40));
  expect(slots.tryReserveSlot()).toBeNull();

  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(41));
});

test('from a task of a caller on, six tasks are executed at once for five seconds', async () => {
  const { clock, slots } = besideCallers();
  const { given } = ask(slots, 50);
  await turn();
  expect(given).toEqual(upTo(6));

  clock.now = 3_000;
  slots.serveCaller();
  clock.now = 7_999;
  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(7));
  clock.now = 8_000;
  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(42));
});

test('beside callers the other tasks follow in their order', async () => {
  const { slots } = besideCallers();
  const { given } = ask(slots, 8);
  await turn();
  expect(given).toEqual(upTo(6));
  expect(slots.tryReserveSlot()).toBeNull();

  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(7));
  slots.releaseSlot();
  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(8));
  expect(slots.tryReserveSlot()).not.toBeNull();
  expect(slots.tryReserveSlot()).toBeNull();
});

test('beside callers a task lends its slot while it waits for a gateway, up to 40 tasks', async () => {
  const { slots } = besideCallers();
  const { given } = ask(slots, 60);
  const answers: (() => void)[] = [];
  const request = () => slots.lendDuring(() => new Promise<void>((done) => answers.push(done)));
  const requests = [request()];
  await turn();
  expect(given).toEqual(upTo(7));
  for (let number = 2; number <= 50; number += 1) requests.push(request());
  await turn();
  expect(given).toEqual(upTo(40));

  for (const answer of answers) answer();
  await Promise.all(requests);
  // 40 tasks are at work: the next one follows when only five are left.
  for (let ended = 1; ended <= 34; ended += 1) slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(40));
  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(41));
});

test('a failed request gives the slot back', async () => {
  const { slots } = besideCallers();
  const failed = slots.lendDuring(() => Promise.reject(new Error('no connection')));
  await expect(failed).rejects.toThrow('no connection');
  const { given } = ask(slots, 7);
  await turn();
  expect(given).toEqual(upTo(6));
});

test('a poll that is cancelled while it waits for a slot, or before the SDK has received its slot, takes none', async () => {
  const { slots } = besideCallers();
  const heard = ask(slots, 5);
  const [unheard, waiting] = [new AbortController(), new AbortController()];
  const sixth = ask(slots, 1, unheard.signal);
  const seventh = ask(slots, 1, waiting.signal);
  await turn();
  expect([heard.given.length, sixth.given, seventh.given]).toEqual([5, [1], []]);

  waiting.abort();
  await turn();
  expect(seventh.refused).toEqual([1]);
  unheard.abort();
  const { given } = ask(slots, 2);
  await turn();
  expect(given).toEqual([1]);
});

test('a poll of a sticky queue gets no slot, and ends when the worker stops', async () => {
  const slots = new WorkflowTaskSlots();
  const stop = new AbortController();
  const sticky = slots.reserveSlot({ ...CONTEXT, isSticky: true }, stop.signal);
  const { given } = ask(slots, 41);
  await turn();
  expect(given).toEqual(upTo(40));
  stop.abort(new Error('stopped'));
  await expect(sticky).rejects.toThrow('stopped');
  slots.releaseSlot();
  await turn();
  expect(given).toEqual(upTo(41));
});
