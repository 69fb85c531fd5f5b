import type { StripeObject } from './errors.ts';
import type { Params } from './form.ts';
import type { Kind } from './kinds.ts';
import type { Scope, StripeAnswer } from './scope.ts';

type Handle<Answer> = (
  scope: Scope,
  request: { readonly id: string; readonly params: Params },
) => Promise<Answer>;

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** `:id` stands for an object's id. */
  readonly path: string;
  /** The parameters that the double supports besides `expand`. Stripe's others are answered with 501. */
  readonly params: readonly string[];
  /** Runs in a transaction. If the function throws, its effects are rolled back. */
  readonly handle: Handle<StripeAnswer>;
}

export interface FoundEndpoint {
  readonly endpoint: Endpoint;
  readonly id: string;
}

export function findEndpoint(
  endpoints: readonly Endpoint[],
  method: string,
  path: string,
): FoundEndpoint | null {
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue;
    const pattern = new RegExp(`^${endpoint.path.replace(':id', '([^/]+)')}$`);
    const match = pattern.exec(path);
    if (match !== null) return { endpoint, id: match[1] ?? '' };
  }
  return null;
}

/** Answers 200 with the object that `work` returns. */
export function serving(
  method: Endpoint['method'],
  path: string,
  params: readonly string[],
  work: Handle<StripeObject>,
): Endpoint {
  return {
    method,
    path,
    params,
    handle: async (scope, request) => ({ status: 200, body: await work(scope, request) }),
  };
}

const PAGE = ['created', 'limit', 'starting_after'];

export function listing(kind: Kind, url: string, filters: readonly string[]): Endpoint {
  return serving('GET', url, [...PAGE, ...filters], ({ book }, { params }) =>
    book.list({ kind, url, filters }, params),
  );
}

/** `param`: the name of the id in the refusal of an unknown one. */
export function reading(kind: Kind, url: string, param?: string): Endpoint {
  return serving(
    'GET',
    `${url}/:id`,
    [],
    async ({ book }, { id }) => (await book.get(kind, id, param)).body,
  );
}
