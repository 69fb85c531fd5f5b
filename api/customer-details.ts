import { z } from 'zod';
import { isCountryCode } from '../domain/countries.ts';
import { text } from './fields.ts';

/** Maximum length of a text inside customerDetails, in characters. */
const DETAIL_MAX = 255;

const detail = () => text(DETAIL_MAX).nullish();

/** Checks only the form of an e-mail address, not whether the address accepts mail. */
export const EMAIL_PATTERN = /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/;

// The pattern accepts an empty string, because an empty string counts as absent.
const email = text(DETAIL_MAX).regex(new RegExp(`^$|${EMAIL_PATTERN.source}`), {
  error: 'must be an e-mail address',
});

const country = z
  .string()
  .refine((code) => code === '' || isCountryCode(code.toUpperCase()), {
    error: 'must be an ISO 3166 alpha-2 country code',
  })
  .meta({ pattern: '^([A-Za-z]{2})?$' });

/** Every field is optional. The details are stored as given, nulls included. */
export const customerDetails = z
  .object({
    name: detail(),
    email: email.nullish(),
    contactNumber: detail(),
    customerAddress: z
      .object({
        addressLine1: detail(),
        addressLine2: detail(),
        city: detail(),
        state: detail(),
        country: country.nullish(),
        postalCode: detail(),
      })
      .nullish(),
  })
  .meta({
    id: 'CustomerDetails',
    description: 'Details of a payer. Every field is optional and is returned as given.',
  });
