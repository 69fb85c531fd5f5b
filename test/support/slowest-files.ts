import type { Reporter, TestModule } from 'vitest/node';

const SHOWN_FILES = 20;

/** Prints the test files that took longest, so that a file that becomes slow is seen in the run that made it slow. */
// oxlint-disable-next-line import/no-default-export -- Vitest loads a reporter by its default export
export default class SlowestFiles implements Reporter {
  onTestRunEnd(files: readonly TestModule[]): void {
    const seconds = files.map((file) => {
      const { collectDuration, duration } = file.diagnostic();
      return { name: file.relativeModuleId, s: (collectDuration + duration) / 1_000 };
    });
    const slowest = seconds.toSorted((a, b) => b.s - a.s).slice(0, SHOWN_FILES);
    console.log(`\n ${slowest.length} slowest of ${files.length} test files:`);
    for (const { name, s } of slowest) console.log(`${s.toFixed(1).padStart(7)} s  ${name}`);
  }
}
