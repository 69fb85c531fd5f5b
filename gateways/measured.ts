import { GatewayRejectedRequest } from './port.ts';
import type { PaymentGateway } from './port.ts';

/** `outcome`: the kind of the port's outcome, `rejected`, or `error`. */
export interface GatewayObserver {
  /** Makes the request, and returns its answer. Default: does nothing else. */
  during?: <T>(request: () => Promise<T>) => Promise<T>;
  requested(gateway: string, call: { operation: string; outcome: string }, seconds: number): void;
  /** The gateway has answered a request with 429. */
  rateLimited(gateway: string): void;
}

const OPERATIONS = [
  'openCardEntry',
  'prepare',
  'charge',
  'lookup',
  'withdraw',
  'refund',
  'lookupRefund',
  'saveMethod',
  'lookupDispute',
  'lookupFraudWarning',
  'lookupMethod',
  'newestCharge',
] as const satisfies readonly (keyof PaymentGateway)[];

type Call = (...args: unknown[]) => Promise<{ kind: string }>;

/** Returns the gateway, with calls that report their duration and outcome. */
export function measuredGateway(
  gateway: PaymentGateway,
  observer: GatewayObserver | undefined,
): PaymentGateway {
  if (observer === undefined) return gateway;
  const { during = (request) => request() } = observer;
  const measured = (operation: string, call: Call): Call => {
    return async (...args) => {
      const startedAt = performance.now();
      const report = (outcome: string) => {
        const seconds = (performance.now() - startedAt) / 1_000;
        observer.requested(gateway.name, { operation, outcome }, seconds);
      };
      try {
        const result = await during(() => call(...args));
        report(result.kind);
        return result;
      } catch (error) {
        report(error instanceof GatewayRejectedRequest ? 'rejected' : 'error');
        throw error;
      }
    };
  };
  const calls = OPERATIONS.flatMap((operation) => {
    const call = gateway[operation] as Call | null;
    return call === null ? [] : [[operation, measured(operation, call)] as const];
  });
  return { ...gateway, ...(Object.fromEntries(calls) as Partial<PaymentGateway>) };
}
