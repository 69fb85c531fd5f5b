import { findPaidSession } from '../../db/repositories/checkouts/sessions.ts';
import type { Attempt } from '../../db/repositories/subscriptions/attempts.ts';
import type { Db } from '../../db/client.ts';
import { AUTHENTICATION_MS } from '../../domain/subscription/authentication.ts';
import { bankReturnUrl } from '../../runtime/payer-links.ts';
import type { LinkSettings } from '../../runtime/payer-links.ts';
import type { SendLimits } from './gateway-exchange.ts';

/** Returns the payer of an attempt from a hosted page; `isAbandoned`: they will not confirm it. */
export async function presentPayerOf(
  { db, links }: { db: Db; links: LinkSettings },
  attempt: Attempt,
  {
    nowAt,
    savesMethod,
    isSuperseded,
  }: { nowAt: number; savesMethod: boolean; isSuperseded: boolean },
): Promise<Pick<SendLimits, 'payer' | 'isAbandoned'>> {
  const { merchantId, intentId, sessionId, payerUrl, payerAskedAt, payerLeftAt } = attempt;
  const session = sessionId && (await findPaidSession(db, { merchantId, sessionId }));
  if (!session) return {};
  const isLate = payerAskedAt !== null && nowAt - payerAskedAt >= AUTHENTICATION_MS;
  return {
    payer: { returnUrl: bankReturnUrl(links, session, intentId), savesMethod },
    isAbandoned: payerUrl !== null && (isLate || payerLeftAt !== null || isSuperseded),
  };
}
