import { userInfo } from 'node:os';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { inject } from 'vitest';

/** What the run found out about a browser. */
export type ChromiumFound = { readonly path: string } | { readonly missing: string };

/**
 * Why tests in a real browser are left out, or null when they run. In CI they always run: a browser
 * that is missing there is a failure.
 */
export function chromiumMissing(): string | null {
  const found = inject('chromium');
  return 'missing' in found && !isCi() ? found.missing : null;
}

/**
 * A browser without a screen.
 *
 * @throws Error when there is none, naming the ways to get one.
 */
export async function launchChromium(): Promise<Browser> {
  const found = inject('chromium');
  if ('missing' in found) throw new Error(found.missing);
  return chromium.launch({
    executablePath: found.path,
    // Its sandbox refuses to run as root.
    chromiumSandbox: userInfo().uid !== 0,
  });
}

function isCi(): boolean {
  return !['', '0', 'false', undefined].includes(process.env['CI']);
}
