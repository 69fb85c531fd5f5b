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

/** Control characters, line separators, and characters that change the direction of the text after them. */
export const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

const CONTROLS = new RegExp(CONTROL, 'gu');

/** Escapes the control characters of text that comes from outside, so that it stays in its place on a terminal. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (char) => {
    const code = char.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Escapes an error's message like {@link printable}. Its line breaks stay, and the lines after the first are indented. */
export function errorText(message: string): string {
  const lines = message.split('\n').map(printable);
  return lines.map((line, i) => (i === 0 || line.startsWith('  ') ? line : `  ${line}`)).join('\n');
}

/** JSON whose texts have no control character. A bigint above 2^53 - 1 becomes a string. */
export function jsonText(value: unknown, indent?: number): string {
  const json = JSON.stringify(
    value,
    (_, part: unknown) => (typeof part === 'bigint' ? ofBigint(part) : part),
    indent,
  );
  // JSON escapes only the first 32 control characters. A line break here is part of the layout.
  return json.replace(CONTROLS, (char) => (char === '\n' ? char : printable(char)));
}

function ofBigint(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/**
 * Pads the values to the widths of their columns. A negative width aligns to the right. Apply styles afterwards, because
 * their codes would count as width.
 */
export function cells(widths: readonly number[], values: readonly string[]): string[] {
  return widths.map((width, index) => {
    const value = values[index] ?? '';
    return width < 0 ? value.padStart(-width) : value.padEnd(width);
  });
}

export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** Formats a time like `2027-01-31 12:00`, in UTC. */
export function minuteText(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The innermost cause: the message of a database error itself contains only the SQL statement. */
export function reasonOf(error: Error): string {
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}

/** Exits with the code of `main`, or prints its error and exits with 1; a bug with its stack. */
export async function runScript(main: () => Promise<number>): Promise<never> {
  try {
    process.exit(await main());
  } catch (error) {
    const isBug = error instanceof TypeError || error instanceof ReferenceError;
    const text = error instanceof Error && !isBug ? error.message : (error as Error).stack;
    console.error(`\n${styled('red', 'failed')}: ${errorText(String(text))}\n`);
    process.exit(1);
  }
}
