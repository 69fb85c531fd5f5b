import { minuteText } from '../client/terminal.ts';

/** Collects every difference between what was expected and what came, to be named at the end. */
export class Differences {
  readonly list: string[] = [];

  /** Every field that `expected` names must be equal in `actual`. */
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

/** Instants as dates; nothing else in this story is as large a number. */
function shown(value: unknown): string {
  return typeof value === 'number' && value > 1e12 ? minuteText(value) : JSON.stringify(value);
}
