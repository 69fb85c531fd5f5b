import { pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/**
 * The last answer of a gateway to the periodic sweep. The sweep sends the gateway a look-up only while an outcome is
 * unknown because the gateway did not answer.
 */
export const gatewayHealth = pgTable('gateway_health', {
  gateway: text('gateway').primaryKey(),
  /** Real time at which the sweep's last answered request began; null if none was answered. */
  answeredAt: instant('answered_at'),
  /** Real time of the sweep's first unanswered request since `answeredAt`; null if there is none. */
  silentSinceAt: instant('silent_since_at'),
});
