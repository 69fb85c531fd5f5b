import { z } from 'zod';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { readFields } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';

const SIGNER_MAX = 255;
const ENDPOINT_MAX = 2_048;
/** More than there are types. The limit keeps the error answer for a long list short. */
const EVENT_TYPES_MAX = 50;

const eventSigner = z
  .string()
  .regex(new RegExp(`^[\\x21-\\x7e]{1,${SIGNER_MAX}}$`), {
    error: `must be 1 to ${SIGNER_MAX} visible ASCII characters`,
  })
  .refine((signer) => !signer.startsWith('whsec_') || isBase64(signer.slice('whsec_'.length)), {
    error: 'must be Base64 after whsec_',
  });

/** Rules: IF-4.15, D-50, D-53. */
export const WebhookShape = {
  eventSigner,
  endpoint: z.string().max(ENDPOINT_MAX).meta({ format: 'uri' }),
  subscribedEventTypes: z
    .array(z.enum(EVENT_TYPES))
    .max(EVENT_TYPES_MAX)
    .transform((types) => [...new Set(types)]),
};

export type WebhookBody = Fields<typeof WebhookShape>;

/** Reads show this text in place of every secret. Rule: D-55. */
export const SHOWN_SIGNER = '<SIGNING_SECRET>';

/**
 * Reads the fields of a configuration. `isNew`: the configuration has no stored secret yet, so
 * {@link SHOWN_SIGNER} is refused.
 *
 * @throws DomainError `bad_request` naming every invalid field.
 */
export function readWebhook(
  body: unknown,
  endpointProblem: (endpoint: string) => string | undefined,
  { isNew }: { isNew: boolean },
): WebhookBody {
  return readFields(WebhookShape, body, ({ endpoint, eventSigner: signer }) => {
    const problems: Problem[] = [];
    if (isNew && signer === SHOWN_SIGNER) {
      problems.push({ field: 'eventSigner', message: 'must be a secret of your own' });
    }
    const message = endpoint === undefined ? undefined : endpointProblem(endpoint);
    if (message !== undefined) problems.push({ field: 'endpoint', message });
    return problems;
  });
}

export const ListWebhooksQuery = {
  includeInactive: z.enum(['true', 'false']).default('false'),
};

/** True when the list includes deactivated configurations. Rule: D-55. */
export function readIncludeInactive(query: unknown): boolean {
  return readFields(ListWebhooksQuery, query).includeInactive === 'true';
}

function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}
