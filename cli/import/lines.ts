/** Maximum length of a line in bytes, without the line break. */
const LINE_BYTES_MAX = 524_288;

/** One line of a file. `number` counts from 1 and includes empty lines. */
export interface Line {
  readonly number: number;
  /** Null if the line is too long or not UTF-8; `problem` then says which. */
  readonly text: string | null;
  readonly problem: string | null;
  readonly bytes: number;
}

const NEWLINE = 10;

export async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Line> {
  let number = 0;
  let bytes = 0;
  let parts: Buffer[] = [];
  const add = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= LINE_BYTES_MAX) parts.push(part);
  };
  const finish = (breakBytes: 0 | 1): Line => {
    number += 1;
    const line = { number, ...textOf(parts, bytes), bytes: bytes + breakBytes };
    bytes = 0;
    parts = [];
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, end));
      yield finish(1);
      from = end + 1;
    }
    add(chunk.subarray(from));
  }
  if (bytes > 0) yield finish(0);
}

function textOf(parts: readonly Buffer[], bytes: number): Pick<Line, 'text' | 'problem'> {
  if (bytes > LINE_BYTES_MAX) {
    return { text: null, problem: `has ${bytes} bytes; at most ${LINE_BYTES_MAX} are allowed` };
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts));
    return { text, problem: null };
  } catch {
    return { text: null, problem: 'is not UTF-8' };
  }
}
