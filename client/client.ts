import { OPERATIONS } from './operations.gen.ts';
import type { Operations } from './operations.gen.ts';
import { send } from './request.ts';
import type { CallOptions, ClientSettings } from './request.ts';
import type { Event, FeedEvent, GetEventsData } from './types.gen.ts';

type Name = keyof Operations;
type InputOf<N extends Name> = Omit<Operations[N]['data'], 'url' | 'headers'>;
type AnswerOf<N extends Name> = Operations[N]['answer'];
type Page = { data: readonly unknown[]; metadata: { offset?: string | null } };
type ListName = { [N in Name]: AnswerOf<N> extends Page ? N : never }[Name];
type RecordOf<N extends Name> =
  AnswerOf<N> extends { data: readonly (infer Item)[] } ? Item : never;
type FeedQuery = NonNullable<GetEventsData['query']>;

/** `event` is the parsed `body`. */
export type FeedItem = FeedEvent & { readonly event: Event };

export interface FeedPage {
  readonly events: readonly FeedItem[];
  /** The cursor behind this page. Store it together with what you made of the events. */
  readonly after: string;
}

type Calls = {
  [N in Name]: object extends InputOf<N>
    ? (input?: InputOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>
    : (input: InputOf<N>, options?: CallOptions) => Promise<AnswerOf<N>>;
};

/** A method for each operation of the API, named by its `operationId`. Throws `PerennialError`. */
export interface Client extends Calls {
  /** All records of a list, page by page. */
  each: <N extends ListName>(
    list: N,
    input?: InputOf<N>,
    options?: CallOptions,
  ) => AsyncGenerator<RecordOf<N>>;
  /**
   * The pages of the feed that have events or move the cursor, from `after` on. Waits for further events until `signal`
   * aborts. With `wait: 0` it ends at the end of the feed.
   */
  feed: (query?: FeedQuery, options?: CallOptions) => AsyncGenerator<FeedPage>;
}

const FEED_WAIT_SECONDS = 25;

export function createClient(settings: ClientSettings): Client {
  const calls = Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, operation]) => [
      name,
      (input = {}, options: CallOptions = {}) => send(settings, operation, input, options),
    ]),
  ) as unknown as Calls;

  async function* each<N extends ListName>(list: N, input?: InputOf<N>, options?: CallOptions) {
    const { query = {}, ...rest } = (input ?? {}) as { query?: object };
    const read = calls[list] as (input: object, options?: CallOptions) => Promise<Page>;
    let offset: string | null | undefined;
    do {
      const page = await read({ ...rest, query: { ...query, ...(offset && { offset }) } }, options);
      yield* page.data as RecordOf<N>[];
      ({ offset } = page.metadata);
    } while (offset);
  }

  async function* feed(query: FeedQuery = {}, options: CallOptions = {}) {
    const wait = query.wait ?? FEED_WAIT_SECONDS;
    let { after } = query;
    for (;;) {
      // The first call only asks for the place of `now`, so that a program that ends soon can store it.
      const seconds = after === 'now' ? 0 : wait;
      const asked = { ...query, wait: seconds, ...(after === undefined ? {} : { after }) };
      const { data, metadata } = await calls.getEvents({ query: asked }, options);
      const hasMoved = data.length > 0 || metadata.after !== after;
      ({ after } = metadata);
      if (hasMoved) yield { events: data.map(parsed), after };
      else if (wait === 0) return;
    }
  }

  return { ...calls, each, feed };
}

function parsed(item: FeedEvent): FeedItem {
  return { ...item, event: JSON.parse(item.body) as Event };
}
