/** Rule: D-§7. */
export const SETUP_METHOD_STATUSES = ['CREATED', 'SUCCESS', 'FAILED', 'CANCELLED'] as const;
export type SetupMethodStatus = (typeof SETUP_METHOD_STATUSES)[number];

/**
 * The status at `nowAt`: a session that nobody completed in time is over, whatever its row says. A
 * declined card leaves it open, so FAILED is a session whose tries are used up.
 */
export function setupMethodStatusAt(
  session: { status: SetupMethodStatus; expiresAt: number },
  nowAt: number,
): SetupMethodStatus {
  return session.status === 'CREATED' && nowAt >= session.expiresAt ? 'CANCELLED' : session.status;
}
