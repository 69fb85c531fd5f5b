import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createDocument } from '../../../api/openapi/document.ts';
import { OPERATIONS } from '../../../api/http/frame.ts';
import { loadEmbeddedConfig } from '../../../tools/config.ts';
import { cachedFolder } from '../../../tools/embedded/cache.ts';
import { runCommand } from '../../../tools/embedded/run-command.ts';
import { goPrograms } from '../../../tools/embedded/go-programs.ts';

const GO_GENERATOR = 'v2.8.2';
const PYTHON_GENERATOR = '0.29.1';
/** Time limit in ms to download and compile a generator on a slow machine. */
const INSTALL_TIMEOUT_MS = 10 * 60_000;
const timeout = { timeoutMs: INSTALL_TIMEOUT_MS };

const SOURCES = import.meta.dirname;
const silently = (): void => undefined;

async function writeDocument(folder: string): Promise<string> {
  const settings = { publicUrl: 'https://pay.example', testCards: [] };
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(createDocument(OPERATIONS, settings)));
  return file;
}

/** Generates a Go client, and compiles `life.go` with it. Returns the program's path. */
export async function buildGoLife(folder: string): Promise<string> {
  const { cacheDir } = loadEmbeddedConfig();
  const generator = await goPrograms(cacheDir, silently, {
    entry: `oapi-codegen-${GO_GENERATOR}`,
    module: 'github.com/oapi-codegen/oapi-codegen/v2',
    version: GO_GENERATOR,
    programs: ['cmd/oapi-codegen'],
    duration: 'seconds',
  });
  await mkdir(join(folder, 'client'));
  const args = ['-generate', 'types,client', '-package', 'client', '-o', 'client/client.go'];
  const inFolder = { ...timeout, cwd: folder };
  const document = await writeDocument(folder);
  await runCommand(join(generator, 'oapi-codegen'), [...args, document], inFolder);
  for (const file of ['go.mod', 'go.sum', 'life.go']) {
    await copyFile(join(SOURCES, file), join(folder, file));
  }
  await runCommand('go', ['build', '-o', 'life', '.'], inFolder);
  return join(folder, 'life');
}

/** Generates a Python client in `folder`. Returns the Python that has the client's dependencies. */
export async function generatePythonClient(folder: string): Promise<string> {
  const { cacheDir } = loadEmbeddedConfig();
  const entry = `openapi-python-client-${PYTHON_GENERATOR}`;
  const python = (place: string): string => join(place, 'bin', 'python');
  const place = await cachedFolder(cacheDir, entry, async (building) => {
    await runCommand('python3', ['-m', 'venv', building], timeout);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await runCommand(
      python(building),
      [...pip, `openapi-python-client==${PYTHON_GENERATOR}`],
      timeout,
    );
  });
  const config = join(folder, 'config.json');
  await writeFile(config, JSON.stringify({ post_hooks: [] })); // no formatter of the generated code
  const document = await writeDocument(folder);
  const options = ['--fail-on-warning', '--meta', 'none', '--config', config];
  options.push('--path', document, '--output-path', join(folder, 'client'));
  const generate = ['-m', 'openapi_python_client', 'generate', ...options];
  await runCommand(python(place), generate, timeout);
  return python(place);
}
