// npm run release:document records the OpenAPI document of a release, without its texts and examples. Later documents
// must not break its clients.

import { writeFileSync } from 'node:fs';
import { OPERATIONS } from '../../api/http/frame.ts';
import { createDocument } from '../../api/openapi/document.ts';
import { print } from '../../cli/command-line/terminal.ts';

const FILE = 'test/architecture/released-document.json';
const TEXTS = ['description', 'summary', 'example', 'examples', 'x-codeSamples', 'tags'];

const document = createDocument(OPERATIONS, { publicUrl: 'https://pay.example', testCards: [] });
const isText = (name: string, value: unknown): boolean =>
  TEXTS.includes(name) &&
  (typeof value !== 'object' || Array.isArray(value) || name === 'examples');
writeFileSync(
  FILE,
  `${JSON.stringify(document, (name, value: unknown) => (isText(name, value) ? undefined : value), 1)}\n`,
);
print(`· ${FILE} is the document of this release`);
