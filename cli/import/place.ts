import type { Db } from '../../db/client.ts';
import { gatewayRows } from '../../db/repositories/merchants/gateways.ts';
import { createMerchantGateways } from '../../gateways/merchant-gateways.ts';
import type { GatewayRegistry } from '../../gateways/registry.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { commandPlace } from '../command-line/place.ts';
import { createSealing } from '../../runtime/sealing.ts';

const GATEWAY_TIMEOUT_MS = 20_000;

type Place = ReturnType<typeof placeOf>;

export function placeOf() {
  const { encryptionKeys, gatewayPort, ...place } = commandPlace();
  if (encryptionKeys === undefined) throw new Error('Set the ENCRYPTION_KEY of API and worker.');
  const stripe = place.doubleUrls.stripe ?? place.stripeDouble?.proxyUrl;
  const gatewayUrl = place.gatewayUrl ?? `http://127.0.0.1:${gatewayPort}`;
  return { ...place, encryptionKeys, gatewayUrl, doubleUrls: { ...place.doubleUrls, stripe } };
}

export function gatewaysOf(place: Place, db: Db): GatewayRegistry {
  return createMerchantGateways({
    sandbox: createSandboxClient({
      url: place.gatewayUrl,
      publicUrl: place.gatewayUrl,
      apiKey: place.gatewayKey ?? '',
      timeoutMs: GATEWAY_TIMEOUT_MS,
    }),
    ...gatewayRows(db),
    sealing: createSealing(place.encryptionKeys),
    timeoutMs: GATEWAY_TIMEOUT_MS,
    doubleUrls: place.doubleUrls,
  });
}
