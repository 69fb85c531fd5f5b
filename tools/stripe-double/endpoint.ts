import type { Params } from './form.ts';
import type { Kind } from './kinds.ts';
import type { Scope, StripeAnswer } from './scope.ts';

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** `:id` stands for an object's id. */
  readonly path: string;
  /** The parameters that the double supports. Stripe's other parameters are answered with 501. */
  readonly params: readonly string[];
  /** Runs in a transaction. If the function throws, its effects are rolled back. */
  handle(
    scope: Scope,
    request: { readonly id: string; readonly params: Params },
  ): Promise<StripeAnswer>;
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

const PAGE = ['created', 'expand', 'limit', 'starting_after'];

export function listing(kind: Kind, url: string, filters: readonly string[]): Endpoint {
  return {
    method: 'GET',
    path: url,
    params: [...PAGE, ...filters],
    handle: async ({ book }, { params }) => ({
      status: 200,
      body: await book.list({ kind, url, filters }, params),
    }),
  };
}

/** `param`: the name of the id in the refusal of an unknown one. */
export function reading(kind: Kind, url: string, param?: string): Endpoint {
  return {
    method: 'GET',
    path: `${url}/:id`,
    params: ['expand'],
    handle: async ({ book }, { id }) => ({
      status: 200,
      body: (await book.get(kind, id, param)).body,
    }),
  };
}
