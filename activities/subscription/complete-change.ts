import { withUpdateLink } from '../../domain/events.ts';
import type { Change } from '../../domain/subscription/change.ts';
import { takePlace } from '../../domain/subscription/renewal-places.ts';
import { takesNewMethod } from '../../domain/subscription/state.ts';
import { updateMethodLink } from '../../runtime/payer-links.ts';
import type { ActivityDeps } from '../deps.ts';

/**
 * Adds what the rules do not know: the delay of the next charge, which is `place`, and the link for another payment method
 * in events of a declined cycle, if the status allows.
 */
export function completeChange(
  { links, places }: Pick<ActivityDeps, 'links' | 'places'>,
  { state: unplaced, events, effects }: Change,
  realNowAt: number,
) {
  const place = takePlace(places, unplaced, realNowAt);
  const state = { ...unplaced, ...place };
  const isDunning = events.some(({ dunning }) => dunning !== undefined);
  // A link expires in real time, also on a test clock.
  const linked =
    isDunning && takesNewMethod(state.status)
      ? withUpdateLink(events, updateMethodLink(links, state, Date.now()))
      : events;
  return { place, change: { state, events: linked, effects } };
}
