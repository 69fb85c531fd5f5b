import type { HostedSetup } from '../../../db/repositories/setup-methods/hosted.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

/** The stage of a setup session. `locked`: too many cards were declined. */
export type SetupStage = 'open' | 'locked' | 'saved' | 'expired';

export function setupStageOf(setup: HostedSetup, nowAt: number): SetupStage {
  switch (setupMethodStatusAt(setup, nowAt)) {
    case 'CREATED':
      return setup.tries >= CARD_TRIES_MAX[setup.mode] ? 'locked' : 'open';
    case 'SUCCESS':
      return 'saved';
    case 'FAILED':
      return 'locked';
    case 'CANCELLED':
      return 'expired';
  }
}
