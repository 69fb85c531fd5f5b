import type { NewestCharge, NotSent, PaymentGateway } from './port.ts';

/** What the database knows of an account's charges. */
export interface KnownCharges {
  /** Real time of the newest send, in epoch ms. */
  newestSendAt(): Promise<number>;
  /** True if a row has the charge's id, which is stored before the charge is made, or `verify --adopt` has looked at it. */
  isKnown(charge: Extract<NewestCharge, { kind: 'found' }>): Promise<boolean>;
}

/** The gateway's clock may differ from ours by this time, in ms. */
const CLOCKS_DIFFER_MS = 600_000;

/**
 * Returns the gateway, which moves no money before the database has the newest charge of the gateway's book. A database
 * that was restored to an older state does not have it, and might make a lost charge again.
 */
export function fencedGateway(
  gateway: PaymentGateway,
  merchantId: string,
  known: KnownCharges,
): PaymentGateway {
  const { newestCharge, prepare } = gateway;
  if (newestCharge === null) return gateway;
  let hasPassed = false;
  const obstacle = async (): Promise<NotSent | null> => {
    if (hasPassed) return null;
    const newest = await newestCharge(merchantId, (await known.newestSendAt()) - CLOCKS_DIFFER_MS);
    if (newest.kind === 'not_sent') return newest;
    if (newest.kind === 'unknown') return { kind: 'not_sent', reason: newest.reason };
    if (newest.kind === 'absent' || (await known.isKnown(newest))) {
      hasPassed = true;
      return null;
    }
    const reason = `the database is older than the gateway, which has ${newest.gatewayChargeId}: npm run verify -- --adopt`;
    return { kind: 'not_sent', reason };
  };
  return {
    ...gateway,
    prepare: prepare && (async (request) => (await obstacle()) ?? prepare(request)),
    charge: async (request) => (await obstacle()) ?? gateway.charge(request),
    refund: async (request) => (await obstacle()) ?? gateway.refund(request),
  };
}
