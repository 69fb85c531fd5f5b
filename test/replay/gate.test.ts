import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { historyProblems } from '../../cli/replay/problems.ts';
import { createReplay } from '../../cli/replay/replay.ts';
import type { Replayed } from '../../cli/replay/replay.ts';
import { scrubbed } from '../../cli/replay/scrub.ts';

const FOLDER = 'test/replay/histories/1.0.0';

type Json = Record<string, unknown>;
interface History {
  events: Json[];
}

const read = (file: string) => JSON.parse(readFileSync(`${FOLDER}/${file}`, 'utf8')) as History;

let replayAll: (histories: [string, unknown][]) => Promise<Replayed[]>;

beforeAll(async () => {
  const replay = await createReplay();
  replayAll = async (histories) => {
    const all: Replayed[] = [];
    for await (const replayed of replay(histories)) all.push(replayed);
    return all;
  };
});

/** A number in a history that is an amount or an instant: how to find it, and how to alter it. */
interface Place {
  readonly eventId: string;
  readonly path: string;
  alter: (history: History) => void;
}

const IS_MEANT = /(^|\.)(amountMinor|newAmountMinor|at|\w+At)$/;

/** Every amount and instant in the payloads of a history, the time of every event but the last, and the length of every timer. */
function placesIn(history: History): Place[] {
  return history.events.flatMap((event, index) => [
    ...(index === history.events.length - 1
      ? []
      : [
          {
            eventId: String(event['eventId']),
            path: 'eventTime',
            alter: (copy: History) => {
              const at = Date.parse(String(event['eventTime'])) + 60_000;
              copy.events[index]!['eventTime'] = new Date(at).toISOString();
            },
          },
        ]),
    ...payloadsIn(event, []).flatMap((steps) => {
      const payload = memberAt(event, steps) as Payload;
      return numbersIn(valueOf(payload), []).map((path) => ({
        eventId: String(event['eventId']),
        path: path.join('.'),
        alter: (copy: History) => {
          const target = memberAt(copy.events[index], steps) as Payload;
          const value = valueOf(target);
          const parent = memberAt(value, path.slice(0, -1)) as Record<string, number>;
          parent[path.at(-1)!]! += 60_000;
          target.data = Buffer.from(JSON.stringify(value)).toString('base64');
        },
      }));
    }),
    ...(event['timerStartedEventAttributes'] === undefined
      ? []
      : [
          {
            eventId: String(event['eventId']),
            path: 'startToFireTimeout',
            alter: (copy: History) => {
              const timer = copy.events[index]!['timerStartedEventAttributes'] as Json;
              timer['startToFireTimeout'] =
                `${(Number.parseFloat(String(timer['startToFireTimeout'])) + 60).toFixed(3)}s`;
            },
          },
        ]),
  ]);
}

interface Payload {
  data: string;
  metadata: { digest?: string };
}

const bytesOf = ({ data }: Pick<Payload, 'data'>): Buffer => Buffer.from(data, 'base64');

const valueOf = (payload: Payload): unknown => JSON.parse(bytesOf(payload).toString() || 'null');

const memberAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((part, name) => (part as Json)[name], value);

function payloadsIn(value: unknown, path: string[]): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  if ('metadata' in value && 'data' in value) return [path];
  return Object.entries(value).flatMap(([name, member]) => payloadsIn(member, [...path, name]));
}

function numbersIn(value: unknown, path: string[]): string[][] {
  if (typeof value === 'number') return IS_MEANT.test(path.join('.')) ? [path] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => numbersIn(member, [...path, name]));
}

describe('a replay of histories on this build', () => {
  test('finds no difference from a recorded history, also after tokens and names are removed from it', async () => {
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
    const all = files.map((file): [string, unknown] => [file, scrubbed(read(file))]);
    const replayed = await replayAll(all);
    expect(replayed).toHaveLength(files.length);
    const wrong = replayed.map((run) => ({ name: run.name, problems: historyProblems(run) }));
    // Its recorder sets a row back, but not the row's ledger.
    const [held, ...others] = wrong.filter(({ problems }) => problems.length > 0);
    expect(others).toEqual([]);
    expect(held?.name).toBe('held-1.json');
    expect(held?.problems.slice(0, 2)).toEqual([
      'event 17: its state: version was 1, by this build it is 3',
      'event 17: its state: status was "CREATED", by this build it is "ACTIVE"',
    ]);
  });

  test('finds in each history a digest for all that was written, except by the SDK and by an operator', () => {
    const without = readdirSync(FOLDER).flatMap((file) =>
      read(file).events.flatMap((event) =>
        payloadsIn(event, []).flatMap((steps) => {
          const payload = memberAt(event, steps) as Payload;
          const isText = ['', '"'].includes(bytesOf(payload).toString().slice(0, 1));
          const isOfTheSdk = steps.slice(1, 3).join('.') === 'details.data';
          if (isText || isOfTheSdk || payload.metadata.digest !== undefined) return [];
          return [`${file} ${String(event['eventType'])}`];
        }),
      ),
    );
    expect(without).toEqual([
      'operator-signals-1.json EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED',
      'operator-signals-1.json EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED',
    ]);
  });

  // An operator's signals have no digest; what follows from them is in the texts for the Web UI.
  test.each(['long-1.json', 'operator-signals-1.json'])(
    'finds altered amounts and instants of %s, and names the event',
    async (file) => {
      const altered = placesIn(read(file)).map(({ eventId, path, alter }): [string, unknown] => {
        const history = read(file);
        alter(history);
        return [`${eventId} ${path}`, history];
      });
      const replayed = await replayAll(altered);
      expect(replayed).toHaveLength(altered.length);
      const missed = replayed.filter(
        (run) => !historyProblems(run).some((problem) => problem.startsWith('event ')),
      );
      expect(missed.map(({ name }) => name)).toEqual([]);
    },
  );
});
