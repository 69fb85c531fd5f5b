import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { expect, test } from 'vitest';
import type { RequestState } from '../../../api/http/request.ts';
import { deadline, errorBoundary } from '../../../api/http/every-request.ts';
import { createLogger } from '../../../runtime/logger.ts';

/** The answer of a server that runs `work`. The signal `late` aborts after 20 ms, and the 503 follows 200 ms later. */
async function answerOf(work: (late: AbortSignal) => Promise<string>) {
  const app = new Koa<RequestState>();
  const logger = createLogger({ name: 'test' }, { write: () => undefined });
  app
    .use(errorBoundary(logger))
    .use(deadline(20, 200))
    .use(async (ctx) => {
      ctx.body = await work(ctx.state.late);
    });
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return { status: answer.status, text: await answer.text() };
  } finally {
    server.close();
  }
}

test('a request without an outcome is answered 503 at the end of the grace period [D-§8]', async () => {
  const { status, text } = await answerOf(() => new Promise(() => undefined));
  expect(status).toBe(503);
  expect(JSON.parse(text)).toMatchObject({ errorCode: 'service_unavailable' });
});

test('a route may still answer in the grace period, which begins when the signal `late` aborts [D-17, D-§8]', async () => {
  const answer = await answerOf(async (late) => {
    await once(late, 'abort');
    return 'given up';
  });
  expect(answer).toEqual({ status: 200, text: 'given up' });
});
