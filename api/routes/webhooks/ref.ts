import { isId } from '../../../domain/ids.ts';
import type { EndpointRef } from '../../../domain/endpoint-breaker.ts';
import { notFound } from '../../http/request.ts';

export const CONFIG_ID = 'whc_0002sSOLuT4mR8yNqD1sKjWb';
export const configIdParam = { description: 'Id of a webhook configuration.', example: CONFIG_ID };

/** Throws `resource_not_found` for a malformed id, as for an unknown id. */
export function configRef({
  merchant,
  params: { webhookConfigId: configId },
}: {
  merchant: { id: string };
  params: { webhookConfigId: string };
}): EndpointRef {
  if (!isId('whc', configId)) throw notFound('webhook configuration');
  return { merchantId: merchant.id, configId };
}
