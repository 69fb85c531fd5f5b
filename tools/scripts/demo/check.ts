import { minuteText } from '../../../cli/command-line/terminal.ts';

export class Differences {
  readonly list: string[] = [];

  fields(where: string, expected: object, actual: object): void {
    const found = actual as Readonly<Record<string, unknown>>;
    for (const [name, value] of Object.entries(expected)) {
      this.equal(`${where}: ${name}`, value, found[name]);
    }
  }

  equal(where: string, expected: unknown, actual: unknown): void {
    const [wanted, got] = [shown(expected), shown(actual)];
    if (wanted !== got) this.list.push(`${where} should be ${wanted} and is ${got}`);
  }
}

/** Formats a value. A number above 1e12 is a time in epoch ms, because all other numbers are smaller. */
function shown(value: unknown): string {
  return typeof value === 'number' && value > 1e12 ? minuteText(value) : JSON.stringify(value);
}
