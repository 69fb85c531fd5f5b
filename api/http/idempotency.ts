import { createHash } from 'node:crypto';
import type { Db } from '../../db/client.ts';
import {
  claimKey,
  DECLINED_KEY_LIFETIME_MS,
  deleteKey,
  releaseKey,
  storeAnswer,
} from '../../db/repositories/merchants/idempotency-keys.ts';
import type {
  Claim,
  KeyUse,
  OrderPrefix,
  StoredAnswer,
} from '../../db/repositories/merchants/idempotency-keys.ts';
import { DomainError, ERRORS } from '../../domain/errors.ts';
import { newId } from '../../domain/ids.ts';
import { callerOf, errorAnswer } from './request.ts';
import type { Answer, Context } from './request.ts';
import type { ApiDeps } from '../deps.ts';
import { UnstoredRefusal } from './body.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import { outsideRequest } from '../../runtime/request-scope.ts';
import { toDomainError } from './every-request.ts';

type Deps = Pick<ApiDeps, 'db' | 'now' | 'random'>;

export interface KeyedCall {
  readonly keyUse: KeyUse | null;
  /** Rejects if the fields are refused now. With a key, runs after the claim, unless an earlier call began the work. */
  readonly check: () => Promise<void>;
  /** Aborts 3 s before the request's deadline. At the deadline a caller without an answer gets 503. */
  readonly late: AbortSignal;
}

export interface WriteResult<Body> {
  readonly answer: Answer<Body>;
  /** Runs after the commit. Must not throw, because the stored answer cannot change any more. */
  readonly afterCommit?: () => Promise<unknown>;
}

/**
 * Runs `work` in one transaction, with the key and the stored answer. A repeat with the same key returns the stored
 * answer and runs neither `work` nor `afterCommit`.
 */
export async function writeOnce<Body>(
  { keyUse: use, check }: KeyedCall,
  deps: Deps,
  work: (tx: Db) => Promise<WriteResult<Body>>,
): Promise<Answer<Body>> {
  const { db } = deps;
  if (use === null) {
    const { answer, afterCommit } = await db.transaction(work);
    await outsideRequest(async () => afterCommit?.());
    return answer;
  }
  // It reads on another connection, for which it could wait for ever inside the transaction.
  const [checked] = await Promise.allSettled([check()]);
  const { answer, afterCommit } = await db
    .transaction(async (tx): Promise<WriteResult<Body>> => {
      const claim = await claimFor(deps, tx, use);
      if (claim.kind === 'stored') return { answer: replayOf(claim.answer) };
      if (checked.status === 'rejected') throw checked.reason;
      const done = await work(tx);
      await storeAnswer(tx, use, claim.owner, done.answer);
      failpoint('before_claim_commits');
      return done;
    })
    .catch((error: unknown) => storeRefusal(deps, use, error));
  if (answer.isReplayed) return answer;
  failpoint('after_commit');
  await outsideRequest(async () => afterCommit?.());
  return answer;
}

export interface Execution {
  /** The same for every call with one Idempotency-Key, until the key expires. */
  readonly commandId: string;
  /** True if an earlier call with the same key ended without a stored answer. */
  readonly isRepeat: boolean;
  /** True if an earlier call with the same key has written its order or executed its command. */
  readonly isBegun: boolean;
  /**
   * Aborts 3 s before the request's deadline. An order without an outcome must then be voided, because its caller
   * cannot repeat it. Null for a call with a key.
   */
  readonly giveUp: AbortSignal | null;
}

export type OutcomeAnswer<Body> = Answer<Body> & {
  /** False if the answer may still change. Such an answer is not stored. Default: true. */
  readonly isDefinite?: boolean;
  /** True if a charge was declined. The answer is stored for 24 h; then the key may be used again. */
  readonly isDeclined?: boolean;
};

interface Progress {
  readonly orderPrefix?: OrderPrefix;
  /** Called in a repeat without a stored answer. */
  readonly hasBegun?: (commandId: string) => Promise<boolean>;
}

/**
 * Claims the key for 45 s, runs `work`, and stores the answer or the definite refusal. After another result a repeat
 * continues with the same command id. `work` must write nothing before it throws an {@link UnstoredRefusal}.
 */
export async function executeOnce<Body>(
  { keyUse: use, check, late }: KeyedCall,
  deps: Deps,
  work: (execution: Execution) => Promise<OutcomeAnswer<Body>>,
  { orderPrefix, hasBegun }: Progress = {},
): Promise<Answer<Body>> {
  const { db, now, random } = deps;
  if (use === null) {
    const commandId = newId('cmd', now(), random);
    return work({ commandId, isRepeat: false, isBegun: false, giveUp: late });
  }
  const claim = await claimFor(deps, db, use, orderPrefix);
  if (claim.kind === 'stored') return replayOf(claim.answer);
  failpoint('after_claim');
  try {
    const isBegun = claim.isRepeat && (await hasBegun?.(claim.commandId)) === true;
    if (!isBegun) await check();
    const answer = await work({ ...claim, isBegun, giveUp: null });
    failpoint('before_answer_stored');
    // Runs also after the request was answered 503, so that a repeat with the key gets this answer.
    await outsideRequest(async () => {
      if (answer.isDefinite === false) return releaseKey(db, use, claim.owner, now());
      const expiresAt = answer.isDeclined ? now() + DECLINED_KEY_LIFETIME_MS : undefined;
      return storeAnswer(db, use, claim.owner, answer, expiresAt);
    });
    failpoint('after_answer_stored');
    return answer;
  } catch (error) {
    const answer = definiteRefusal(error);
    await outsideRequest(async () => {
      if (answer) return storeAnswer(db, use, claim.owner, answer);
      // Invalid fields are refused before anything is written. In a repeat, an earlier call may have written the order.
      const isUnused = error instanceof UnstoredRefusal && !claim.isRepeat;
      const done = isUnused
        ? deleteKey(db, use, claim.owner)
        : releaseKey(db, use, claim.owner, now());
      // If this fails, the lease expires later, and the caller gets the original error.
      return done.catch(() => undefined);
    });
    throw error;
  }
}

function claimFor(
  { now, random }: Deps,
  db: Db,
  use: KeyUse,
  orderPrefix?: OrderPrefix,
): Promise<Claim> {
  return claimKey(db, use, newId('cmd', now(), random), now(), orderPrefix);
}

/** Stores a definite refusal. Claims the key again, because the rollback removed the first claim. */
async function storeRefusal(deps: Deps, use: KeyUse, error: unknown): Promise<WriteResult<never>> {
  const answer = definiteRefusal(error);
  if (!answer) throw error;
  const claim = await deps.db.transaction(async (tx) => {
    const mine = await claimFor(deps, tx, use);
    if (mine.kind === 'mine') await storeAnswer(tx, use, mine.owner, answer);
    return mine;
  });
  if (claim.kind === 'stored') return { answer: replayOf(claim.answer) };
  throw error;
}

/** `Answer<never>` fits every route: the body had the route's type when it was stored. */
function replayOf(answer: StoredAnswer): Answer<never> {
  return { ...answer, isReplayed: true };
}

/** A definite refusal: status 400, and a repeat cannot succeed. An {@link UnstoredRefusal} is never stored. */
function definiteRefusal(thrown: unknown): Answer | null {
  if (thrown instanceof UnstoredRefusal) return null;
  const error = toDomainError(thrown);
  const { status, retryable } = ERRORS[error.code];
  const isDefinite = status === 400 && !retryable;
  return isDefinite ? errorAnswer(error) : null;
}

/** The interface allows at most 255 of these characters. */
const KEY_PATTERN = /^[a-zA-Z0-9\-_:.]{1,255}$/;

/** The fingerprint is of the request's path and body. Throws `bad_request` for a malformed key. */
export function keyUseOf(ctx: Context): KeyUse | null {
  const key = ctx.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new DomainError(
      'bad_request',
      'Idempotency-Key: must be 1 to 255 characters of a-z, A-Z, 0-9, -, _, : and .',
    );
  }
  const route = ctx.state.route ?? '';
  const request = canonicalJson([route, ctx.params, ctx.state.body ?? null], 0);
  const fingerprint = createHash('sha256').update(request, 'utf8').digest();
  return { merchantId: callerOf(ctx).id, route, key, fingerprint };
}

/** Maximum nesting depth of a body. A deeper body could exhaust the stack, and is never valid. */
const DEPTH_MAX = 64;

/** Returns JSON with sorted keys, so that the order of keys does not change the fingerprint. */
function canonicalJson(value: unknown, depth: number): string {
  if (depth > DEPTH_MAX) throw new DomainError('bad_request', 'body: must not be nested so deeply');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) {
    return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`;
  }
  const members = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member, depth + 1)}`);
  return `{${members.join(',')}}`;
}
