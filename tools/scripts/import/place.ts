import type { Db } from '../../../db/client.ts';
import { gatewayRows } from '../../../db/repositories/merchants/gateways.ts';
import { readDemoFile } from '../../embedded/demo-file.ts';
import { loadOrMakeSecrets, secretsFile } from '../../embedded/secrets.ts';
import { createMerchantGateways } from '../../../gateways/merchant-gateways.ts';
import type { GatewayRegistry } from '../../../gateways/registry.ts';
import { createSandboxClient } from '../../../gateways/sandbox/client.ts';
import { loadOperatorConfig } from '../../config.ts';
import { createSealing, keyRingOf } from '../../../runtime/sealing.ts';

const GATEWAY_TIMEOUT_MS = 20_000;

type Place = ReturnType<typeof placeOf>;

/** Without DATABASE_URL, the database, gateway and Temporal of the running `npm start`. */
export function placeOf() {
  const { databaseUrl, dataDir, encryptionKeys, ...config } = loadOperatorConfig();
  if (databaseUrl !== undefined) {
    if (encryptionKeys === undefined) throw new Error('Set the ENCRYPTION_KEY of API and worker.');
    return { ...config, databaseUrl, encryptionKeys };
  }
  const demo = readDemoFile(dataDir);
  const { ENCRYPTION_KEY } = loadOrMakeSecrets(secretsFile(dataDir));
  return {
    ...config,
    ...demo,
    encryptionKeys: keyRingOf(ENCRYPTION_KEY),
    stripeUrl: config.stripeUrl ?? demo.stripeDouble?.proxyUrl,
  };
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
    stripe: { url: place.stripeUrl, timeoutMs: GATEWAY_TIMEOUT_MS },
  });
}
