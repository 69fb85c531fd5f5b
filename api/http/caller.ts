import { timingSafeEqual } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import {
  findCredential,
  hashSecret,
  isUseDue,
  pepperIdOf,
  recordUse,
} from '../../db/repositories/merchants/credentials.ts';
import type { Credential } from '../../db/repositories/merchants/credentials.ts';
import { DomainError } from '../../domain/errors.ts';
import { causesOf } from './every-request.ts';
import type { Context, Merchant } from './request.ts';
import type { ApiDeps, RateLimits } from '../deps.ts';
import PQueue from 'p-queue';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { callerOf } from './request.ts';
import { isId } from '../../domain/ids.ts';
import { memberOf } from '../../domain/subscription/read-command.ts';
import ipaddr from 'ipaddr.js';

/** Time in ms for which a credential is cached. A revoked credential stays valid for at most this time. */
const CACHE_MS = 5_000;
const CACHE_ENTRIES_MAX = 10_000;
const HEADER_LENGTH_MAX = 700;
/** Wrong secrets per client address and key id. The API's memory has one count for each key id of a minute. */
const WRONG_PER_MINUTE = 30;
const COUNTED_KEY_ID_MAX = 64;

/** The hash to compare with if the key id is unknown, so that the comparison takes the same time. */
const PLACEHOLDER_HASH = Buffer.alloc(32);

type Deps = Pick<ApiDeps, 'db' | 'credentialPeppers' | 'logger' | 'now'>;

/** Sets `ctx.state.merchant`, or throws. */
export type Authentication = (ctx: Context) => Promise<void>;

/**
 * Checks HTTP Basic with a key id and its secret. Every failure gets a 401 that does not tell which key ids exist, or 429
 * after 30 wrong secrets in a minute. Right credentials are never limited here.
 */
export function authenticate(deps: Deps): Authentication {
  const check = createCredentialCheck(deps);
  const wrong = new RateLimiterMemory({ points: WRONG_PER_MINUTE, duration: 60 });
  return async (ctx) => {
    const login = readBasic(ctx.get('Authorization'));
    const merchant = login === null ? null : await check(login);
    if (merchant === null) {
      if (login !== null) {
        const key = `${addressOf(ctx)} ${login.keyId.slice(0, COUNTED_KEY_ID_MAX)}`;
        await checkLimit(wrong, key);
        await wrong.penalty(key);
      }
      ctx.set('WWW-Authenticate', 'Basic realm="Perennial API", charset="UTF-8"');
      throw new DomainError('unauthorized', login && isSwapped(login) ? SWAPPED : undefined);
    }
    ctx.state.merchant = merchant;
  };
}

const SWAPPED =
  'The user name and the password are swapped: the user name is the key id (mk_…), the password is the secret (sk_…).';

/** By the forms alone, so that the answer is the same for a key id that exists and for one that does not. */
function isSwapped({ keyId, secret }: Login): boolean {
  return keyId.startsWith('sk_') && secret.startsWith('mk_');
}

interface Login {
  readonly keyId: string;
  readonly secret: string;
}

function readBasic(header: string): Login | null {
  if (header.length > HEADER_LENGTH_MAX) return null;
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header)?.[1];
  if (encoded === undefined) return null;
  const decoded = Buffer.from(encoded, 'base64');
  // Several Base64 texts decode to the same bytes. Only the canonical text is accepted.
  if (decoded.toString('base64') !== encoded) return null;
  const text = decoded.toString('utf8');
  // Key ids and secrets are visible ASCII. The pattern also refuses bytes that are not UTF-8.
  const parts = /^([\x21-\x39\x3b-\x7e]+):([\x21-\x7e]+)$/.exec(text);
  const [, keyId, secret] = parts ?? [];
  return keyId === undefined || secret === undefined ? null : { keyId, secret };
}

function createCredentialCheck({ db, credentialPeppers, logger, now }: Deps) {
  const [pepper = ''] = credentialPeppers;
  const peppers = credentialPeppers.map((value) => ({ id: pepperIdOf(value), value }));
  const cache = new Map<string, { credential: Credential; readAt: number }>();

  function findCached(keyId: string): Credential | null {
    const cached = cache.get(keyId);
    return cached && now() - cached.readAt < CACHE_MS ? cached.credential : null;
  }

  async function read(keyId: string): Promise<Credential | null> {
    cache.delete(keyId);
    const credential = await findCredential(db, keyId);
    // Unknown key ids are not cached, because a caller could fill the cache with invented ids.
    if (credential) {
      if (cache.size >= CACHE_ENTRIES_MAX) cache.clear();
      cache.set(keyId, { credential, readAt: now() });
    }
    return credential;
  }

  /** Not awaited: no request waits for this write, and none fails with it. */
  function noteUse(credential: Credential, secret: string): void {
    const nowAt = now();
    if (!isUseDue(credential, nowAt)) return;
    // In the cached row, so that the next request does not write again.
    credential.lastUsedAt = nowAt;
    const { keyId } = credential;
    recordUse(db, { keyId, secret, pepper, nowAt }).catch((error: unknown) =>
      logger.warn({ keyId, causes: causesOf(error) }, 'the use of a credential was not recorded'),
    );
  }

  return async ({ keyId, secret }: Login): Promise<Merchant | null> => {
    const accept = (credential: Credential | null): Merchant | null => {
      const used = peppers.find(({ id }) => credential?.pepperId.equals(id));
      const hash = hashSecret(used?.value ?? pepper, secret);
      const isRight = timingSafeEqual(hash, credential?.secretHash ?? PLACEHOLDER_HASH);
      if (!credential || !isRight || !isWorking(credential, now())) return null;
      noteUse(credential, secret);
      const { merchantId: id, mode, isReadOnly } = credential;
      return { id, mode, isReadOnly };
    };
    // Every refusal follows a query, so that its time does not tell a cached key id from an unknown one.
    return accept(findCached(keyId)) ?? accept(await read(keyId));
  };
}

function isWorking(credential: Credential, nowAt: number): boolean {
  const { revokedAt, expiresAt } = credential;
  return revokedAt === null && (expiresAt === null || nowAt < expiresAt);
}

export function limitsPerSecond(requests: number): RateLimits {
  return { windowSeconds: 1, requests, readsOfOneSubscription: 10 };
}

export function createLimits({ rateLimits }: Pick<ApiDeps, 'rateLimits'>) {
  const ofRequests = createLimiter(rateLimits.requests, rateLimits);
  const ofReads = createLimiter(rateLimits.readsOfOneSubscription, rateLimits);
  return {
    request: (ctx: Context): Promise<void> => ofRequests(callerOf(ctx).id),
    /** Of the subscription that the path or the body names. */
    read: async (ctx: Context): Promise<void> => {
      const id = ctx.params['subscriptionId'] ?? memberOf(ctx.state.body, 'subscriptionId');
      if (isId('sub', id)) await ofReads(`${callerOf(ctx).id} ${id}`);
    },
    inTurn: costlyInTurn(),
  };
}

/** At most 130 ms each on a slow machine, so that the last one waits less than 3 s. */
const COSTLY_WAITING_MAX = 20;

/**
 * Runs one costly request of a merchant at a time; throws `rate_limit_exceeded` if 20 wait. The requests of other
 * merchants are handled in between.
 */
function costlyInTurn() {
  const queues = new Map<string, PQueue>();
  return async (ctx: Context, work: () => Promise<void>): Promise<void> => {
    const { id } = callerOf(ctx);
    const queue = queues.get(id) ?? new PQueue({ concurrency: 1 });
    if (queue.size >= COSTLY_WAITING_MAX) {
      throw new DomainError('rate_limit_exceeded', undefined, { retryAfterSeconds: 1 });
    }
    queues.set(id, queue);
    try {
      await queue.add(async () => {
        await nextTurn();
        await work();
      });
    } finally {
      if (queue.size + queue.pending === 0) queues.delete(id);
    }
  };
}

function createLimiter(points: number, { windowSeconds }: RateLimits) {
  const limiter = new RateLimiterMemory({ points, duration: windowSeconds });
  return async (key: string): Promise<void> => {
    try {
      await limiter.consume(key);
    } catch (refusal) {
      throw refusal instanceof RateLimiterRes ? limitError(refusal) : refusal;
    }
  };
}

/** Throws `rate_limit_exceeded` if the limiter has counted its points for `key`. Counts nothing. */
export async function checkLimit(limiter: RateLimiterMemory, key: string): Promise<void> {
  const counted = await limiter.get(key);
  if (counted === null || counted.consumedPoints < limiter.points) return;
  throw limitError(counted);
}

function limitError({ msBeforeNext }: RateLimiterRes): DomainError {
  const retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1_000));
  return new DomainError('rate_limit_exceeded', undefined, { retryAfterSeconds });
}

/** Returns the client's address; for IPv6 its /64 network, because one client has all addresses of a /64. */
export function addressOf({ ip }: Context): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  return address.kind() === 'ipv6'
    ? address.toByteArray().slice(0, 8).join('.')
    : address.toString();
}
