import { z } from 'zod';
import { EVENT_TYPES } from '../../../domain/events.ts';
import { text } from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';

const SIGNER_MAX = 255;
const ENDPOINT_MAX = 2_048;
/** Maximum number of event types in a request. The limit keeps an error answer short. */
const EVENT_TYPES_MAX = 50;

/** Answers contain this text in place of every secret. */
export const SHOWN_SIGNER = '<SIGNING_SECRET>' as const;

export const webhookFields = {
  eventSigner: z
    .string()
    .regex(new RegExp(`^[\\x21-\\x7e]{1,${SIGNER_MAX}}$`), {
      error: `must be 1 to ${SIGNER_MAX} visible ASCII characters`,
    })
    .refine((signer) => !signer.startsWith('whsec_') || isBase64(signer.slice('whsec_'.length)), {
      error: 'must be Base64 after whsec_',
    })
    .describe(
      'The secret that signs the events: 1 to 255 visible ASCII characters. Recommended: `whsec_` followed by ' +
        '24 to 64 random bytes in Base64. A text without that prefix is accepted too.',
    ),
  endpoint: text(ENDPOINT_MAX).meta({
    description: 'A public https URL. A development server also accepts http to the same machine.',
    format: 'uri',
  }),
  subscribedEventTypes: z
    .array(z.enum(EVENT_TYPES))
    .max(EVENT_TYPES_MAX)
    .transform((types) => [...new Set(types)])
    .describe('The types of events to send. Events of other types are not sent.'),
};

export function webhookProblems(
  { endpoint }: Partial<Fields<typeof webhookFields>>,
  endpointProblem: (endpoint: string) => string | undefined,
): Problem[] {
  const message = endpoint === undefined ? undefined : endpointProblem(endpoint);
  return message === undefined ? [] : [{ field: 'endpoint', message }];
}

function isBase64(text: string): boolean {
  return text !== '' && Buffer.from(text, 'base64').toString('base64') === text;
}
