import { withUpdateLink } from '../../domain/events.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { takesNewMethod } from '../../domain/subscription/state.ts';
import { updateMethodLink } from '../../runtime/payer-links.ts';
import type { LinkSettings } from '../../runtime/payer-links.ts';

/** Adds the link for another payment method to events of a declined cycle, if the status allows. */
export function linked(links: LinkSettings, change: Change): Change {
  const { state, events } = change;
  const isDunning = events.some(({ dunning }) => dunning !== undefined);
  if (!isDunning || !takesNewMethod(state.status)) return change;
  // A link expires in real time, also on a test clock.
  return { ...change, events: withUpdateLink(events, updateMethodLink(links, state, Date.now())) };
}
