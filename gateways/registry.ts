import type { PaymentGateway } from './port.ts';

export interface GatewayRegistry {
  /** Returns the gateway that a row names. Rejects with {@link UnknownGateway} if this process has none. */
  of(merchantId: string, name: string): Promise<PaymentGateway>;
  /** Returns the gateway of new payment methods. Rejects with DomainError `operation_not_allowed` without one. */
  forNewMethods(merchantId: string): Promise<PaymentGateway>;
}

export interface EventSenders {
  /** Returns the gateways of this name, in test and in live mode. An event's signature shows which has sent it. */
  receiving(name: string): Promise<{ merchantId: string; gateway: PaymentGateway }[]>;
}

/** Thrown if a row names a gateway that this process does not have. Another process can continue the work. */
export class UnknownGateway extends Error {
  override readonly name = 'UnknownGateway';

  constructor(gateway: string) {
    super(`this process has no gateway ${gateway}`);
  }
}
