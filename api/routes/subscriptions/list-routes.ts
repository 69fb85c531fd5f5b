import type { Router } from '@koa/router';
import { listSubscriptions } from '../../../db/repositories/lists.ts';
import { ok, send } from '../../answers.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { listPage } from '../../lists.ts';
import { presentSubscription } from './present.ts';

/** An extension. Rule: D-§7. */
export function listRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  router.get('/subscription', async (ctx) => {
    const list = await listPage(
      ctx,
      'sub',
      (query) => listSubscriptions(deps.db, query),
      (view) => presentSubscription(deps, view),
    );
    send(ctx, ok(list));
  });
}
