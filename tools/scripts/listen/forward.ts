import { messageOf, printable } from '../../../cli/command-line/terminal.ts';

const ANSWER_WITHIN_MS = 15_000;
const SHOWN_CHARACTERS = 100;

/** Posts a webhook as the service does, once and without redirects. Returns the answer as a text. */
export async function forward(
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<string> {
  const startedAt = performance.now();
  try {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'perennial' },
      body,
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const text = printable((await answer.text()).slice(0, SHOWN_CHARACTERS));
    const took = `${(performance.now() - startedAt).toFixed(0)} ms`;
    return `${answer.status} in ${took}${text === '' ? '' : `: ${text}`}`;
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    return `no answer (${cause?.code ?? messageOf(error)})`;
  }
}
