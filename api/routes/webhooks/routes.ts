import type { Router } from '@koa/router';
import {
  createWebhookConfig,
  deleteWebhookConfig,
  listWebhookConfigs,
  updateWebhookConfig,
} from '../../../db/repositories/webhook-configs.ts';
import type { Resealed } from '../../../db/repositories/webhook-configs.ts';
import { isId, newId } from '../../../domain/ids.ts';
import type { Sealing } from '../../../runtime/sealing.ts';
import { NO_CONTENT, notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { answerInTransaction } from '../../idempotency.ts';
import { presentWebhook } from './present.ts';
import { readIncludeInactive, readWebhook, SHOWN_SIGNER } from './schema.ts';

export function webhookRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now, random, sealing, webhooks, endpointProblem } = deps;

  /** Rule: D-55. */
  router.post('/webhook', async (ctx) => {
    const { endpoint, eventSigner, subscribedEventTypes } = readWebhook(
      ctx.state.body,
      endpointProblem,
      { isNew: true },
    );
    const merchantId = callerOf(ctx).id;
    await answerInTransaction(deps, ctx, async (tx) => {
      const at = now();
      const configId = newId('whc', at, random);
      await createWebhookConfig(tx, {
        merchantId,
        configId,
        url: endpoint,
        sealedSigner: sealing.seal(eventSigner, configId),
        eventTypes: subscribedEventTypes,
        at,
      });
      return { answer: ok({ webhookConfigId: configId }) };
    });
  });

  /** Rule: IF-4.14. */
  router.get('/webhook', async (ctx) => {
    const includeInactive = readIncludeInactive(ctx.query);
    const configs = await listWebhookConfigs(db, callerOf(ctx).id, { includeInactive });
    send(ctx, ok({ data: configs.map(presentWebhook) }));
  });

  /** Rules: IF-4.15, D-16. */
  router.put('/webhook/:webhookConfigId', async (ctx) => {
    const { endpoint, eventSigner, subscribedEventTypes } = readWebhook(
      ctx.state.body,
      endpointProblem,
      { isNew: false },
    );
    const ref = configRef(ctx);
    const reseal = (stored: Buffer): Resealed | null => {
      // The client sent the placeholder from a read back, so the stored secret stays.
      if (eventSigner === SHOWN_SIGNER) return null;
      const before = openIfPossible(sealing, stored, ref.configId);
      if (before === eventSigner) return null;
      const sealedSigner = sealing.seal(eventSigner, ref.configId);
      return { sealedSigner, isStoredReadable: before !== null };
    };
    await answerInTransaction(deps, ctx, async (tx) => {
      const isKnown = await updateWebhookConfig(tx, {
        ...ref,
        url: endpoint,
        eventTypes: subscribedEventTypes,
        reseal,
        at: now(),
      });
      if (!isKnown) throw notFound('webhook configuration');
      // Not awaited. The maintenance sweep wakes an endpoint queue that missed the signal.
      return { answer: NO_CONTENT, afterCommit: async () => void webhooks.breakerClosed(ref) };
    });
  });

  /** Rule: D-55. */
  router.delete('/webhook/:webhookConfigId', async (ctx) => {
    const ref = configRef(ctx);
    await answerInTransaction(deps, ctx, async (tx) => {
      const isKnown = await deleteWebhookConfig(tx, { ...ref, at: now() });
      if (!isKnown) throw notFound('webhook configuration');
      return { answer: ok({}) };
    });
  });
}

/** Null when the encryption key of the secret is lost. The merchant repairs that with an update. */
function openIfPossible(sealing: Sealing, stored: Buffer, configId: string): string | null {
  try {
    return sealing.open(stored, configId);
  } catch (error) {
    if (error instanceof Error && error.name === 'SealingError') return null;
    throw error;
  }
}

/** A text that is no configuration id is answered like an unknown id. Rule: D-21. */
function configRef(ctx: Context): { merchantId: string; configId: string } {
  const configId = pathParam(ctx, 'webhookConfigId');
  if (!isId('whc', configId)) throw notFound('webhook configuration');
  return { merchantId: callerOf(ctx).id, configId };
}
