import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createDocument } from '../../../api/openapi/document.ts';
import { OPERATIONS } from '../../../api/http/frame.ts';
import { loadEmbeddedConfig } from '../../../tools/config.ts';
import { cachedFolder } from '../../../tools/embedded/cache.ts';
import { goPrograms } from '../../../tools/embedded/go-programs.ts';
import { copyJars } from '../../../tools/embedded/maven.ts';
import { runCommand } from '../../../tools/embedded/run-command.ts';

const GO_GENERATOR = 'v2.8.2';
const PYTHON_GENERATOR = '0.29.1';
const OPENAPI_GENERATOR = '7.25.0';
/** As in the `pom.xml` that openapi-generator makes. */
const JAVA_PACKAGES = [
  'com.google.code.findbugs:jsr305:3.0.2',
  'com.google.code.gson:gson:2.10.1',
  'com.squareup.okhttp3:okhttp:4.12.0',
  'com.squareup.okhttp3:logging-interceptor:4.12.0',
  'io.gsonfire:gson-fire:1.9.0',
  'jakarta.annotation:jakarta.annotation-api:1.3.5',
  'jakarta.ws.rs:jakarta.ws.rs-api:2.1.6',
  'org.apache.commons:commons-lang3:3.18.0',
  'org.openapitools:jackson-databind-nullable:0.2.11',
];
/** For programs that run for seconds. */
const JAVA_FLAGS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
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
  return buildGo(folder, 'life.go');
}

async function buildGo(folder: string, source: string): Promise<string> {
  for (const file of ['go.mod', 'go.sum', source]) {
    await copyFile(join(SOURCES, file), join(folder, basename(file)));
  }
  await runCommand('go', ['build', '-o', 'life', '.'], { ...timeout, cwd: folder });
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

/** Makes a client by openapi-generator in `<folder>/client`. Returns the folder of the jars that a Java client needs. */
async function openapiGenerate(
  folder: string,
  language: string,
  ...options: string[]
): Promise<string> {
  const { cacheDir } = loadEmbeddedConfig();
  const entry = `openapi-generator-${OPENAPI_GENERATOR}`;
  const place = await cachedFolder(cacheDir, entry, async (building) => {
    await copyJars(join(building, 'client'), JAVA_PACKAGES);
    const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`;
    const copy = ['-q', '-B', 'dependency:copy', `-Dartifact=${artifact}`];
    await runCommand('mvn', [...copy, `-DoutputDirectory=${building}`], timeout);
  });
  const program = join(place, `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`);
  const args = ['-i', await writeDocument(folder), '-g', language, '-o', join(folder, 'client')];
  await runCommand(
    'java',
    [...JAVA_FLAGS, '-jar', program, 'generate', ...args, ...options],
    timeout,
  );
  return join(place, 'client');
}

/** As {@link buildGoLife}, with the client of openapi-generator. */
export async function buildOpenapiGoLife(folder: string): Promise<string[]> {
  await openapiGenerate(folder, 'go', '-p', 'packageName=client,withGoMod=false');
  return [await buildGo(folder, 'openapi-generator/life.go')];
}

/** Compiles the Java client of openapi-generator, and `Life.java` with it. Returns the command that runs it. */
export async function buildOpenapiJavaLife(folder: string): Promise<string[]> {
  const jars = join(await openapiGenerate(folder, 'java'), '*');
  const client = join(folder, 'client/src/main/java');
  const files = (await readdir(client, { recursive: true })).filter((file) =>
    file.endsWith('.java'),
  );
  const sources = [
    join(SOURCES, 'openapi-generator/Life.java'),
    ...files.map((file) => join(client, file)),
  ];
  const classes = join(folder, 'classes');
  const options = ['-nowarn', '-proc:none', '-d', classes, '-cp', jars];
  await runCommand('javac', [...options, ...sources], timeout);
  return ['java', ...JAVA_FLAGS, '-cp', `${classes}:${jars}`, 'Life'];
}
