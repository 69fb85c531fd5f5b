import type { PaymentGateway } from '../../gateways/port.ts';
import { UnknownGateway } from '../../gateways/registry.ts';
import type { EventSenders, GatewayRegistry } from '../../gateways/registry.ts';

/** Returns a registry with one gateway for all merchants, which sends no events. */
export function oneGateway(gateway: PaymentGateway): GatewayRegistry & EventSenders {
  return {
    async of(_merchantId, name) {
      if (name !== gateway.name) throw new UnknownGateway(name);
      return gateway;
    },
    forNewMethods: async () => gateway,
    receiving: async () => [],
  };
}
