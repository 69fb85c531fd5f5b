import { CHECKOUT_STATES } from './checkout-states.ts';
import { GATEWAY_STATES } from './gateway-states.ts';
import { LINK_STATES } from './link-states.ts';
import { ORDER_STATES } from './order-states.ts';
import type { PageStates } from './page-servers.ts';
import { REFUSAL_STATES } from './refusal-states.ts';
import { UPDATE_STATES } from './update-states.ts';

/** Every state of the hosted pages that looks different from the others. */
export const PAGE_STATES: PageStates = {
  ...CHECKOUT_STATES,
  ...ORDER_STATES,
  ...UPDATE_STATES,
  ...LINK_STATES,
  ...GATEWAY_STATES,
  ...REFUSAL_STATES,
};
