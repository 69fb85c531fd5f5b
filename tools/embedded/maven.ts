import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPath } from './find-program.ts';
import { CommandError, runCommand } from './run-command.ts';

const MAVEN_TIMEOUT_MS = 10 * 60_000;

/** Copies the jars of the artifacts `<group>:<name>:<version>`, and those that they need, to `folder`. */
export async function copyJars(folder: string, artifacts: readonly string[]): Promise<void> {
  for (const program of ['java', 'mvn']) {
    if ((await onPath(program)) === undefined) {
      throw new CommandError(`Maven: \`${program}\` is not on PATH`);
    }
  }
  const project = await mkdtemp(join(tmpdir(), 'perennial-maven-'));
  try {
    await writeFile(join(project, 'pom.xml'), pomOf(artifacts));
    await runCommand(
      'mvn',
      ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`],
      { timeoutMs: MAVEN_TIMEOUT_MS, cwd: project },
    );
  } finally {
    await rm(project, { recursive: true, force: true });
  }
  for (const artifact of artifacts) {
    const [, name, version] = artifact.split(':');
    if (existsSync(join(folder, `${name}-${version}.jar`))) continue;
    throw new CommandError(`Maven: ${artifact} is not among the downloaded jars`);
  }
}

const pomOf = (
  artifacts: readonly string[],
): string => `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>perennial</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>${artifacts.map(dependencyOf).join('')}</dependencies>
</project>
`;

function dependencyOf(artifact: string): string {
  const [group, name, version] = artifact.split(':');
  return `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`;
}
