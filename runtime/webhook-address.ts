import { Resolver } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import { Agent, request } from 'node:http';
import type { ClientRequest, RequestOptions } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { callbackify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { isHttpUrl } from '../domain/http-url.ts';
import { MAIL_ENDPOINT } from '../domain/mails.ts';
import { hasAtMost } from '../domain/storable-text.ts';

export interface AddressRules {
  /** Development only: accepts `http:` and loopback addresses. */
  allowLoopback: boolean;
  /** Accepts {@link MAIL_ENDPOINT}, too. */
  sendsMails?: boolean;
}

const MAX_URL_LENGTH = 2_048;
const CONNECT_TIMEOUT_MS = 3_000;
/** Time in ms for which an idle connection is kept: less than the 5 s after which many servers close theirs. */
const IDLE_MS = 4_000;
/** Time in ms for the answer of a name server, of which each is asked twice. */
const NAME_TIMEOUT_MS = 1_000;
/**
 * Time in ms for IPv6 after IPv4 has answered, or the reverse: some name servers never answer one of the questions. It
 * allows a second question, and leaves half of the time to connect.
 */
const OTHER_FAMILY_MS = 1_500;
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Addresses in a public range that reach the host of a cloud machine (Azure). */
const NOT_PUBLIC_DESPITE_RANGE = new Set(['168.63.129.16']);

/** The IPv6 range of public unicast addresses. */
const IPV6_PUBLIC = ipaddr.IPv6.parseCIDR('2000::/3');

const NO_MAIL_SERVER =
  'needs a mail server, and this installation has none: its operator sets SMTP_URL and MAIL_FROM';

/** Returns why an endpoint's URL is refused. Addresses of names are checked at connect time. */
export function endpointProblem(endpoint: string, rules: AddressRules): string | undefined {
  if (endpoint === MAIL_ENDPOINT) return rules.sendsMails ? undefined : NO_MAIL_SERVER;
  if (!hasAtMost(endpoint, MAX_URL_LENGTH)) return `must have at most ${MAX_URL_LENGTH} characters`;
  if (!isHttpUrl(endpoint)) return 'must be an absolute https URL';
  const url = new URL(endpoint);
  const isLoopback = isLoopbackHost(url.hostname);
  const mayBeHttp = rules.allowLoopback && isLoopback;
  if (url.protocol !== 'https:' && !(mayBeHttp && url.protocol === 'http:')) {
    return 'must be an absolute https URL';
  }
  // The parser drops empty credentials, as of `https://:@merchant.example`.
  if (/^\w+:\/\/[^/?#]*@/.test(endpoint)) return 'must not contain credentials';
  const host = withoutBrackets(url.hostname);
  const isRefused = isIP(host) ? !isAllowedAddress(host, rules) : isLoopback && !mayBeHttp;
  return isRefused ? 'must have a public address' : undefined;
}

/** True if events may be sent to the IPv4 or IPv6 address `text`. */
export function isAllowedAddress(text: string, rules: AddressRules): boolean {
  if (!ipaddr.isValid(text)) return false;
  // An IPv4-mapped IPv6 address is checked as IPv4.
  const address = ipaddr.process(text);
  if (address.range() === 'loopback') return rules.allowLoopback;
  if (address.range() !== 'unicast' || NOT_PUBLIC_DESPITE_RANGE.has(address.toString()))
    return false;
  return address.kind() === 'ipv4' || address.match(IPV6_PUBLIC);
}

/**
 * Returns a function that begins requests to allowed addresses only, and connects within 3 s. It checks exactly the
 * addresses to which it connects, except a literal one in the URL, which {@link endpointProblem} checks.
 * The request fails with `EBLOCKED` for a name with another address.
 */
export function createGuardedRequest(
  rules: AddressRules,
  newResolver = () => new Resolver({ timeout: NAME_TIMEOUT_MS, tries: 2 }),
): (url: string, options: RequestOptions) => ClientRequest {
  const connection = {
    lookup: guardedLookup(rules, newResolver),
    keepAlive: true,
    timeout: IDLE_MS,
    // Node gives up an address after 250 ms, which a far endpoint needs, and tries IPv6, which may have no route.
    autoSelectFamilyAttemptTimeout: CONNECT_TIMEOUT_MS / 2,
  };
  const [agent, secureAgent] = [new Agent(connection), new SecureAgent(connection)];
  return (url, options) => {
    const isSecure = new URL(url).protocol === 'https:';
    const begun = request(url, { ...options, agent: isSecure ? secureAgent : agent });
    return begun.once('socket', (socket) => {
      limitConnecting(socket, isSecure ? 'secureConnect' : 'connect');
    });
  };
}

function limitConnecting(socket: Socket, connected: 'connect' | 'secureConnect'): void {
  if (!socket.connecting) return;
  let isOver = false;
  const fail = () => {
    const late = Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' });
    if (!isOver) socket.destroy(late);
  };
  // After a standstill of the process, the timer may end before the event of a connection that was made in time.
  const timer = setTimeout(() => setImmediate(fail), CONNECT_TIMEOUT_MS);
  for (const end of [connected, 'close']) {
    socket.once(end, () => {
      isOver = true;
      clearTimeout(timer);
    });
  }
}

function guardedLookup(rules: AddressRules, newResolver: () => Resolver): LookupFunction {
  // A resolver reads the machine's name servers when it is made, and they may change.
  const resolveName = callbackify((hostname: string) => addressesOf(hostname, newResolver()));
  return (hostname, options, callback) => {
    resolveName(hostname, (error, addresses) => {
      const first = addresses?.[0];
      if (error) callback(error, '');
      else if (!first || !addresses.every(({ address }) => isAllowedAddress(address, rules))) {
        callback(blocked(), '');
      } else if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/**
 * Asks the name servers itself. `dns.lookup` would take one of the two threads that a process has for names until the
 * servers of a dead domain time out, and requests to a gateway would wait.
 */
async function addressesOf(hostname: string, resolver: Resolver): Promise<LookupAddress[]> {
  if (isLoopbackHost(hostname)) return [...LOOPBACK];
  const found: LookupAddress[] = [];
  const ask = async (addresses: Promise<string[]>, family: 4 | 6): Promise<void> => {
    for (const address of await addresses) found.push({ address, family });
  };
  const answers = [ask(resolver.resolve4(hostname), 4), ask(resolver.resolve6(hostname), 6)];
  const all = Promise.allSettled(answers);
  const late = async () => Promise.race([all, sleep(OTHER_FAMILY_MS, undefined, { ref: false })]);
  await Promise.any(answers).then(late, () => undefined);
  if (found.length === 0) await answers[0];
  return found.toSorted((a, b) => a.family - b.family);
}

function blocked(): NodeJS.ErrnoException {
  return Object.assign(new Error('the address is not public'), { code: 'EBLOCKED' });
}

function isLoopbackHost(hostname: string): boolean {
  const host = withoutBrackets(hostname).replace(/\.$/, '').toLowerCase();
  if (isIP(host)) return ipaddr.process(host).range() === 'loopback';
  return host === 'localhost' || host.endsWith('.localhost');
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
