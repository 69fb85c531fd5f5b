import type { Params } from './form.ts';
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
