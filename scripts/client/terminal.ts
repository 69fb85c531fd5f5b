import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'green' | 'red' | 'yellow' | 'cyan';

const hasColours = process.stdout.isTTY && process.stdout.hasColors();

/** Returns `text` in a style. Returns `text` unchanged if the terminal has no styles or NO_COLOR is set. */
export function styled(style: Style, text: string): string {
  return hasColours ? styleText(style, text) : text;
}

export function print(line = ''): void {
  console.log(line);
}

export interface Column {
  readonly width: number;
  readonly align?: 'left' | 'right';
}

/** Pads the values to their columns. Apply styles afterwards, because their codes would count as width. */
export function cells(columns: readonly Column[], values: readonly string[]): string[] {
  return columns.map(({ width, align = 'left' }, index) => {
    const value = values[index] ?? '';
    return align === 'left' ? value.padEnd(width) : value.padStart(width);
  });
}

/** Formats a number like `1,234`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** Formats a time like `2027-01-31 12:00`, in UTC. */
export function minuteText(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}

/**
 * Returns the message of the error's innermost cause. The message of a database error itself contains only the
 * SQL statement.
 */
export function reasonOf(error: Error): string {
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}

/**
 * Runs `main` and exits with the code that it returns. If `main` throws, prints the error's message and
 * exits with 1. A TypeError or ReferenceError is a bug, so its stack is printed too.
 */
export async function runScript(main: () => Promise<number>): Promise<never> {
  try {
    process.exit(await main());
  } catch (error) {
    const isBug = error instanceof TypeError || error instanceof ReferenceError;
    const text = error instanceof Error && !isBug ? error.message : (error as Error).stack;
    console.error(`\n${styled('red', 'failed')}: ${text}\n`);
    process.exit(1);
  }
}
