import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listen } from '../../tools/scripts/client/listen.ts';

/** `drop`: the API executes the request, and the connection closes without its answer. */
type Reaction =
  | 'pass'
  | 'drop'
  | { status: number; headers?: Record<string, string>; body: string };

/** A server in front of an API that reacts to the next requests in the given way, and passes the others on. */
export async function openAnsweringProxy(apiUrl: string) {
  const requests: { call: string; key: string | undefined }[] = [];
  const next: Reaction[] = [];
  const react = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = request;
    const body = await buffer(request);
    requests.push({ call: `${method} ${url}`, key: headers['idempotency-key']?.toString() });
    const reaction = next.shift() ?? 'pass';
    if (typeof reaction !== 'string') {
      response.writeHead(reaction.status, reaction.headers).end(reaction.body);
      return;
    }
    const { host: _, connection: __, 'content-length': ___, ...passed } = headers;
    const answer = await fetch(apiUrl + url, {
      method,
      headers: passed as Record<string, string>,
      ...(body.length === 0 ? {} : { body }),
    });
    const text = await answer.text();
    if (reaction === 'drop') request.socket.destroy();
    else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(text);
  };
  const server = createServer((request, response) => {
    react(request, response).catch((error: unknown) => response.writeHead(599).end(String(error)));
  });
  return {
    ...(await listen(server)),
    requests,
    reactNext: (...reactions: Reaction[]): void => void next.push(...reactions),
  };
}
