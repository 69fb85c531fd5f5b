import type { Router } from '@koa/router';
import { storeGatewayEvent } from '../../../db/repositories/gateway-events/events.ts';
import { isWaitedFor } from '../../../db/repositories/gateway-events/subjects.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { GatewayHint } from '../../../domain/gateway-hint.ts';
import { isStorable } from '../../../domain/storable-text.ts';
import { failpoint } from '../../../runtime/failpoints.ts';
import { ok, pathParam, send } from '../../http/request.ts';
import type { Context, RequestState } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { readBytes } from '../../http/body.ts';

const BODY_LIMIT_BYTES = 262_144;

/**
 * Receives the events of gateways: the signature proves the sender. An event is stored before the 200. A wrong
 * signature and an unknown account get the same 400, so that accounts cannot be found out.
 */
export function gatewayEventRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, gatewaySubjects } = deps;
  router.post('/gateways/:gateway/events/:account', async (ctx) => {
    const rawBody = await readBytes(ctx.req, BODY_LIMIT_BYTES);
    const { merchantId, gateway, hints } = await verified(deps, ctx, rawBody);
    const account = { merchantId, gateway };
    failpoint('before_event_stored');
    for (const hint of hints) {
      const isWaiting = await isWaitedFor(db, account, hint);
      const subject = await storeGatewayEvent(db, account, hint, !isWaiting);
      failpoint('after_event_stored');
      // Not awaited. If the wake-up fails, the sweep starts the workflow.
      if (subject !== null) void gatewaySubjects.wake(subject);
    }
    send(ctx, ok({}));
  });
}

/**
 * Returns the hints of a signed request, and the merchant whose secret verifies it: two merchants may share an
 * account.
 * @throws DomainError `bad_request` if no secret does.
 */
async function verified(
  { gateways }: ApiDeps,
  ctx: Context,
  rawBody: Buffer,
): Promise<{ merchantId: string; gateway: string; hints: GatewayHint[] }> {
  const sender = `${pathParam(ctx, 'gateway')}:${pathParam(ctx, 'account')}`;
  const receivers = isStorable(sender) ? await gateways.receiving(sender) : [];
  for (const { merchantId, gateway } of receivers) {
    const hints = gateway.readEvents?.(rawBody, ctx.headers) ?? 'bad_signature';
    if (hints !== 'bad_signature') return { merchantId, gateway: gateway.name, hints };
  }
  throw new DomainError('bad_request', 'The request has no valid signature of this account.');
}
