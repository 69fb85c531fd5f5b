import type { GatewayPlace } from './gateway.ts';

export interface Place extends GatewayPlace {
  /** Returns the current pepper. Throws if working credentials were made with a pepper that this process lacks. */
  readonly pepper: () => Promise<string>;
}

export interface Report {
  readonly lines: readonly string[];
  readonly data: unknown;
}
