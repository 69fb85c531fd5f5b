import { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';

/** So much room that a test whose subject is another one delays no renewal. */
export const PLACES = new RenewalPlaces(100_000);
