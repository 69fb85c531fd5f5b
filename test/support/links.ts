import type { LinkSettings } from '../../runtime/payer-links.ts';

/** The settings for the links to hosted pages in tests. */
export const LINKS: LinkSettings = {
  publicUrl: 'https://pay.example',
  sessionKey: 'session-key-of-the-tests-000000000000001',
};
