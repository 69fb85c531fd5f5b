import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** The names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type RawConnection = ReturnType<typeof openConnection>;

/** Opens a TCP connection on which a test writes HTTP as bytes. */
export function openConnection(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let received = '';
  let isClosed = false;
  let wake = (): void => undefined;
  socket.on('data', (chunk) => {
    received += chunk.toString();
    wake();
  });
  // A server that has answered may reset the connection. The close event follows this error.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      isClosed = true;
      wake();
      resolve();
    });
  });

  return {
    write: (bytes: string | Buffer): void => void socket.write(bytes),
    /** Ends the connection with a reset. */
    reset: (): void => void socket.resetAndDestroy(),
    close: (): void => void socket.destroy(),
    /** Resolves when the connection is closed. */
    closed,
    /** Everything received that `answer` has not returned. */
    rest: (): string => received,
    /** Returns the next answer. Throws if the connection closes before the whole answer has arrived. */
    async answer(): Promise<RawAnswer> {
      for (;;) {
        const [answer, length] = readAnswer(received);
        if (answer !== null) {
          received = received.slice(length);
          return answer;
        }
        if (isClosed) throw new Error(`closed after: ${JSON.stringify(received.slice(0, 200))}`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}

/** Returns the first answer of the text and its length; null until the answer has arrived completely. */
function readAnswer(text: string): [RawAnswer | null, number] {
  const headLength = text.indexOf('\r\n\r\n');
  if (headLength < 0) return [null, 0];
  const [statusLine = '', ...lines] = text.slice(0, headLength).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...value] = line.split(': ');
      return [name.toLowerCase(), value.join(': ')];
    }),
  );
  const start = headLength + 4;
  const end = start + Number(headers['content-length'] ?? 0);
  const bytes = Buffer.from(text.slice(start));
  if (bytes.length < end - start) return [null, 0];
  const body = bytes.subarray(0, end - start).toString();
  const status = Number(statusLine.split(' ')[1]);
  return [{ status, headers, body }, start + body.length];
}
