import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { execFileSync, spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';

let documents: { file: string; text: string }[];

beforeAll(async () => {
  const listed = execFileSync('git', ['ls-files', '*.md'], { encoding: 'utf8' });
  const files = listed.split('\n').filter((file) => file !== '' && existsSync(file));
  documents = await Promise.all(
    files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })),
  );
});

const matches = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map((match) => match[1] ?? '');

/** Every tracked file of code, documents or configuration, with its text. */
async function writtenFiles(): Promise<{ file: string; text: string }[]> {
  const patterns = ['*.ts', '*.tsx', '*.mjs', '*.cjs', '*.md', '*.yml', '*.yaml', 'Dockerfile'];
  const listed = execFileSync('git', ['ls-files', ...patterns], { encoding: 'utf8' });
  const files = listed.split('\n').filter((file) => file !== '' && existsSync(file));
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })));
}

test('code and documents cite only documents and ADRs of the repository', async () => {
  const adrs = new Set(readdirSync('docs/adr').map((name) => name.slice(0, 4)));
  const dangling = (await writtenFiles()).flatMap(({ file, text }) =>
    [
      ...matches(text, /\b((?:design|reliability|temporal|stripe|speed|production|style) §)/gi),
      ...matches(text, /\b((?:interface|decisions|design|language)\.md)\b/g),
      ...matches(text, /\bADR (\d{4})\b/g).filter((number) => !adrs.has(number)),
    ].map((reference) => `${file}: ${reference}`),
  );
  expect(dangling).toEqual([]);
});

describe('the documents', () => {
  test('name only npm scripts that exist', async () => {
    const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
      scripts: Record<string, string>;
    };
    const unknown = documents.flatMap(({ file, text }) =>
      matches(text, /npm run ([\w:-]+)/g)
        .filter((name) => !(name in scripts))
        .map((name) => `${file}: npm run ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  test('reference only files that exist', () => {
    const missing = documents.flatMap(({ file, text }) => [
      ...matches(text, /\]\(([^)#\s]+)(?:#[^)]*)?\)/g)
        .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(file), target)))
        .map((target) => `${file}: ${target}`),
      ...matches(
        text,
        /`((?:test|scripts|proof|domain|workflows|activities|api|db|runtime|temporal|embedded|gateways)\/[\w./-]+\.tsx?)`/g,
      )
        .filter((target) => !existsSync(target))
        .map((target) => `${file}: ${target}`),
    ]);
    expect(missing).toEqual([]);
  });

  test('name in the common changes of CONTRIBUTING.md only files that contain the names beside them', async () => {
    const guide = await readFile('CONTRIBUTING.md', 'utf8');
    const [, walks = ''] = /## Five common changes\n(.*?)\n## /s.exec(guide) ?? [];
    const steps = walks.split(/\n(?=\d\. )/).slice(1);
    expect(steps).toHaveLength(22);
    const wrong: string[] = [];
    for (const step of steps) {
      // Each name in a step belongs to the file that the step names next.
      const words = [...step.matchAll(/`([\w./-]+)`/g)].map(([, word = '']) => word);
      let names: string[] = [];
      for (const word of words) {
        if (!word.includes('/')) names.push(word);
        else if (!existsSync(word)) wrong.push(`no file ${word}`);
        else {
          const text = await readFile(word, 'utf8');
          const absent = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
          wrong.push(...absent.map((name) => `no ${name} in ${word}`));
          names = [];
        }
      }
    }
    expect(wrong).toEqual([]);
  });
});

/** Files and folders in which a document tells people to keep secrets, or a documented command writes data. */
async function documentedPlaces(): Promise<string[]> {
  const settings = ['.env.example', 'docker-compose.yml'].map((file) => readFile(file, 'utf8'));
  const texts = [...documents.map(({ text }) => text), ...(await Promise.all(settings))];
  const file = (text: string) =>
    matches(text, /(?:-file|html|history|csv|svg|json) (\w[\w-]*\.\w+)/g);
  const all = texts.flatMap((text) => [
    ...file(text),
    ...matches(text, / < ([\w-]+\.\w+)$/gm),
    ...matches(text, /([\w.-]+\.jsonl)/g),
    ...matches(text, /cp \.env\.example (\S+)/g),
    ...matches(text, /--download \d+ (\w+)/g).map((folder) => `${folder}/run.json`),
    ...matches(text, /^# DATA_DIR=(\S+)$/gm).flatMap((folder) => [
      `${folder}/secrets.json`,
      `${folder}-double/secrets.json`,
    ]),
  ]);
  return [...new Set(all)].toSorted();
}

test('git and the image ignore every documented file of secrets or data', async () => {
  const places = await documentedPlaces();
  expect(places).toEqual([
    '.data-double/secrets.json',
    '.data/secrets.json',
    '.env',
    'day.json',
    'endpoints.json',
    'histories/run.json',
    'key.txt',
    'life.html',
    'live-key.txt',
    'run.json',
    'subscriptions.jsonl',
    'subscriptions.report.jsonl',
  ]);
  const tracked = places.filter((place) => {
    const { status } = spawnSync('git', ['check-ignore', '--no-index', '--quiet', place]);
    return status !== 0;
  });
  expect(tracked).toEqual([]);
  const [first, ...copied] = (await readFile('.dockerignore', 'utf8')).trim().split('\n');
  expect(first).toBe('*');
  const inImage = places.filter((place) => copied.includes(`!${place.split('/')[0]}`));
  expect(inImage).toEqual([]);
});
