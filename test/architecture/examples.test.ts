import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import type { OpenAPI3 } from 'openapi-typescript';
import { expect, test } from 'vitest';
import { createDocument } from '../../api/openapi/document.ts';
import { OPERATIONS } from '../../api/http/frame.ts';

/**
 * A copy of an OpenAPI document without summaries and descriptions, so that the types change only when the
 * interface changes.
 */
function withoutTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTexts);
  if (typeof value !== 'object' || value === null) return value;
  const isText = (key: string, member: unknown): boolean =>
    (key === 'description' || key === 'summary') && typeof member === 'string';
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, member]) => !isText(key, member))
      .map(([key, member]) => [key, withoutTexts(member)]),
  );
}

test('the types of the example in TypeScript are those of the OpenAPI document [D-§7]', async () => {
  const settings = { publicUrl: 'https://pay.example', testCards: [] };
  const document = withoutTexts(createDocument(OPERATIONS, settings)) as OpenAPI3;
  const types = astToString(await openapiTS(document));
  const file = '../../examples/whole-life/api.d.ts';
  const message =
    'The interface has changed. Run this test with -u, and read the change of the types.';
  await expect(COMMENT_HEADER + types, message).toMatchFileSnapshot(file);
});
