import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import {
  endAnswer,
  json,
  readJson,
  refusal,
  RequestRefused,
  writeAnswer,
} from '../../gateways/http-server/http.ts';
import { listen } from '../../gateways/http-server/listening.ts';
import type { ListenOptions } from '../../gateways/http-server/listening.ts';
import { expectControlKey } from './control-key.ts';
import { createArmed } from './armed.ts';
import { applies, readFault } from './faults.ts';
import type { Fault } from './faults.ts';

export interface FaultProxyOptions extends ListenOptions {
  readonly targetUrl: string;
  /** Bearer token of `/control/faults` of the proxy. Other control routes are forwarded. */
  readonly controlKey: string;
}

export interface FaultProxy {
  readonly url: string;
  close(): Promise<void>;
}

const FAULTS_PATH = '/control/faults';

/** HTTP headers that concern one connection only. The proxy does not forward these headers. */
const OF_THE_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
]);

/** Forwards everything unchanged but what a fault hits. `/control/faults`: POST adds, GET lists, DELETE removes all. */
export async function createFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const faults = createArmed<Fault>();
  const closing = new AbortController();
  const pool = new Pool(options.targetUrl, { headersTimeout: 0, bodyTimeout: 0 });

  const forward = async ({ method, url, headers }: IncomingMessage, body: Buffer, extra = {}) => {
    const answer = await pool.request({
      method: method ?? 'GET',
      path: url ?? '/',
      headers: { ...forwardable(headers), ...extra },
      body: body.length === 0 ? null : body,
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    return { status: answer.statusCode, headers: forwardable(answer.headers), body: bytes };
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = new URL(request.url ?? '/', options.targetUrl).pathname;
    if (path === FAULTS_PATH) return control(faults, options.controlKey, request, response);
    // The body is read first, so that the request is forwarded even if the client closes its connection.
    const body = await buffer(request);
    const fault = faults.take((each) => applies(each, request.method ?? 'GET', path));
    if (fault === null) return write(response, await forward(request, body));
    if (fault.fault === 'delay') await sleep(fault.delayMs, undefined, { signal: closing.signal });
    if (fault.fault === 'delay' || fault.fault === 'add_headers') {
      return write(response, await forward(request, body, fault.headers));
    }
    const isForwarded = fault.fault === 'lose_answer' || fault.effect === 'done';
    if (isForwarded && fault.fault !== 'lose_request') await forward(request, body);
    breakAnswer(fault, request, response);
  };

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // The target is unreachable, or this proxy is closing.
      if (response.headersSent) response.destroy();
      else write(response, { status: 502, headers: {}, body: Buffer.from(String(error)) });
    });
  });
  const url = await listen(server, options);

  return {
    url,
    close: async () => {
      closing.abort();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await pool.destroy();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Buffer;
}

function breakAnswer(fault: Fault, request: IncomingMessage, response: ServerResponse): void {
  if (fault.fault === 'hang') return;
  if (fault.fault === 'reset') request.socket.resetAndDestroy();
  else if (fault.fault === 'answer') {
    write(response, {
      status: fault.status,
      headers: { 'content-type': 'application/json', ...fault.headers },
      body: Buffer.from(fault.body),
    });
  } else response.destroy();
}

function write(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, { ...headers, 'content-length': body.length });
  endAnswer(response, body);
}

function forwardable(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || OF_THE_CONNECTION.has(name) ? [] : [[name, value]],
    ),
  );
}

async function control(
  faults: ReturnType<typeof createArmed<Fault>>,
  key: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    expectControlKey(request, key);
    if (request.method === 'POST') faults.add(readFault(await readJson(request)));
    else if (request.method === 'DELETE') faults.clear();
    else if (request.method !== 'GET') {
      throw new RequestRefused(405, 'method_not_allowed', 'GET, POST or DELETE.');
    }
    writeAnswer(response, json(200, { faults: faults.list() }));
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    writeAnswer(response, refusal(error));
  }
}
