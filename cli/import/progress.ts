import { grouped } from '../command-line/terminal.ts';

const TERMINAL_MS = 200;
const FILE_MS = 5_000;
const BAR_WIDTH = 30;

export interface Progress {
  add(bytes: number): void;
  end(): void;
}

/** Shows the progress on stderr: a bar on a terminal, else a line every 5 s. */
export function showProgress(totalBytes: number, stream: NodeJS.WriteStream): Progress {
  const startedAt = performance.now();
  const isTerminal = stream.isTTY;
  let shownAt = startedAt;
  let lines = 0;
  let bytes = 0;
  const text = (): string => {
    const share = totalBytes === 0 ? 1 : Math.min(1, bytes / totalBytes);
    const rate = lines / Math.max(0.001, (performance.now() - startedAt) / 1_000);
    const figures = `${Math.floor(share * 100)} %  ${grouped(lines)} lines, ${rate.toFixed(0)}/s`;
    if (!isTerminal) return `${figures}\n`;
    const full = Math.round(share * BAR_WIDTH);
    return `\r\u001b[K${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${figures}`;
  };
  return {
    add: (lineBytes) => {
      lines += 1;
      bytes += lineBytes;
      const now = performance.now();
      if (now - shownAt < (isTerminal ? TERMINAL_MS : FILE_MS)) return;
      shownAt = now;
      stream.write(text());
    },
    end: () => {
      if (isTerminal) stream.write('\r\u001b[K');
    },
  };
}
