import { describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../api/http/frame.ts';
import { createApiEnvironment } from '../support/api-environment.ts';
import { chromiumMissing, launchChromium } from '../support/chromium.ts';

describe.skipIf(chromiumMissing() !== null)('the page of the API document, in a browser,', () => {
  it('shows every operation, and loads everything from this server [D-§7]', async () => {
    const env = await createApiEnvironment();
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const requested: string[] = [];
      const errors: string[] = [];
      page.on('request', (request) => requested.push(request.url()));
      page.on('console', (message) => errors.push(message.text()));
      page.on('pageerror', (error) => errors.push(error.message));
      await page.goto(`${env.url}/docs`);
      await page.getByText('/subscription/manual-retry').waitFor();
      const summaries = page.locator('.opblock-summary-path');
      expect(await summaries.count()).toBeGreaterThanOrEqual(OPERATIONS.length);
      const search = page.getByPlaceholder('Search by path, summary, operationId or tag');
      const found = page.locator('.opblock-tag-section .opblock-summary-path');
      for (const phrase of ['/MERCHANT/refund', ' refund a payment, fully', 'refundIntent']) {
        await search.fill(phrase);
        await expect
          .poll(() => found.allInnerTexts(), { message: phrase })
          .toEqual(['/payments/merchant/refund']);
      }
      await search.fill('links');
      await expect
        .poll(() => found.allInnerTexts())
        .toEqual(['/subscription/link/merchant/generate-link', '/link/merchant/generate-link']);
      await search.fill('refundIntent');
      await expect.poll(() => found.count()).toBe(1);
      await page.getByText('/payments/merchant/refund').click();
      const sample = page.locator('pre', { hasText: 'curl' });
      expect(await sample.innerText()).toContain(
        'curl -X POST "$API_URL/payments/merchant/refund" \\\n  -u "$KEY_ID:$SECRET"',
      );
      expect(requested.map((url) => url.replace(env.url, '')).toSorted()).toEqual([
        '/docs',
        '/docs/start.js',
        '/docs/swagger-ui-bundle.js',
        '/docs/swagger-ui.css',
        '/openapi.json',
      ]);
      expect(errors).toEqual([]);
    } finally {
      await browser.close();
      await env.close();
    }
  });
});
