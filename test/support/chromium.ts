import { userInfo } from 'node:os';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { inject } from 'vitest';

/** The path of the browser of this test run, or the reason why the test run has none. */
export type ChromiumFound = { readonly path: string } | { readonly missing: string };

/**
 * The reason to skip tests in a real browser, or null when the tests run. In CI they always run: a missing
 * browser is a failure there.
 */
export function chromiumMissing(): string | null {
  const found = inject('chromium');
  return 'missing' in found && !isCi() ? found.missing : null;
}

/**
 * Starts a headless Chromium.
 *
 * @throws Error that lists the ways to get a browser, when there is none.
 */
export async function launchChromium(): Promise<Browser> {
  const found = inject('chromium');
  if ('missing' in found) throw new Error(found.missing);
  return chromium.launch({
    executablePath: found.path,
    // Chromium's sandbox cannot run as root.
    chromiumSandbox: userInfo().uid !== 0,
  });
}

export function isCi(): boolean {
  return !['', '0', 'false', undefined].includes(process.env['CI']);
}
