import { createHash } from 'node:crypto';
import type { Db } from '../db/client.ts';
import { claimKey, releaseKey, storeAnswer } from '../db/repositories/idempotency.ts';
import type { Claim, KeyUse, StoredAnswer } from '../db/repositories/idempotency.ts';
import { DomainError, ERRORS } from '../domain/errors.ts';
import { newId } from '../domain/ids.ts';
import { errorAnswer, send } from './answers.ts';
import type { Answer } from './answers.ts';
import { callerOf } from './context.ts';
import type { Context } from './context.ts';
import type { ApiDeps } from './deps.ts';
import { FieldsError } from './fields.ts';
import { failpoint } from '../runtime/failpoints.ts';
import { toDomainError } from './middleware/errors.ts';

type Deps = Pick<ApiDeps, 'db' | 'now' | 'random'>;

/** What work inside a transaction leaves: the answer, and what may only happen once it committed. */
export interface Outcome {
  readonly answer: Answer;
  /** Must not throw: the answer is decided by then. */
  readonly afterCommit?: () => Promise<unknown>;
}

/**
 * Answers with work that is one transaction of ours: the work, the key and the answer kept under it
 * commit together, so no half-done state exists. A repeat of the key gets the stored bytes.
 * `afterCommit` runs only for the call that did the work. Rule: D-17.
 */
export async function answerInTransaction(
  deps: Deps,
  ctx: Context,
  work: (tx: Db) => Promise<Outcome>,
): Promise<void> {
  const use = keyUseOf(ctx);
  const { db } = deps;
  if (use === null) {
    const outcome = await db.transaction(work);
    await outcome.afterCommit?.();
    send(ctx, outcome.answer);
    return;
  }
  const outcome = await db
    .transaction(async (tx): Promise<Outcome | StoredAnswer> => {
      const claim = await claimFor(deps, tx, use);
      if (claim.kind === 'stored') return claim.answer;
      const done = await work(tx);
      await keep(tx, use, claim.owner, done.answer);
      failpoint('before_claim_commits');
      return done;
    })
    .catch((error: unknown) => refuse(deps, use, error));
  if ('httpStatus' in outcome) {
    replay(ctx, outcome);
    return;
  }
  failpoint('after_commit');
  await outcome.afterCommit?.();
  send(ctx, outcome.answer);
}

/** The first call's command id, and whether this call repeats one that ended without an answer. */
export interface CommandCall {
  readonly commandId: string;
  readonly isRepeat: boolean;
  /**
   * Without a key nobody can ask for this command again: tells when what has no outcome yet is to be
   * given up, a moment before the caller is left without an answer. Null with a key.
   */
  readonly giveUp: AbortSignal | null;
}

/**
 * Answers with work that waits for others (a workflow): the key is claimed first, under a lease, and
 * the definite answer kept afterwards. Work that throws something that is not definite (503, a
 * pending payment) gives the key up, so that a repeat goes on with the same command id. `isDefinite`
 * tells a 200 that may still change from one that will not; default: every one is. Rule: D-17.
 */
export async function answerOutcome(
  deps: Deps,
  ctx: Context,
  work: (call: CommandCall) => Promise<Answer & { readonly isDefinite?: boolean }>,
): Promise<void> {
  const use = keyUseOf(ctx);
  const { db, now, random } = deps;
  if (use === null) {
    const commandId = newId('cmd', now(), random);
    send(ctx, await work({ commandId, isRepeat: false, giveUp: ctx.state.late }));
    return;
  }
  const claim = await claimFor(deps, db, use);
  if (claim.kind === 'stored') {
    replay(ctx, claim.answer);
    return;
  }
  failpoint('after_claim');
  try {
    const answer = await work({ ...claim, giveUp: null });
    failpoint('before_answer_stored');
    if (answer.isDefinite === false) await releaseKey(db, use, claim.owner, now());
    else await keep(db, use, claim.owner, answer);
    failpoint('after_answer_stored');
    send(ctx, answer);
  } catch (error) {
    const answer = definiteRefusal(error);
    if (answer) await keep(db, use, claim.owner, answer);
    // A failure here leaves the lease to run out, and is no news beside the error itself.
    else await releaseKey(db, use, claim.owner, now()).catch(() => undefined);
    throw error;
  }
}

function claimFor({ now, random }: Deps, db: Db, use: KeyUse): Promise<Claim> {
  return claimKey(db, use, newId('cmd', now(), random), now());
}

/** The work's transaction was rolled back, and the claim with it: a definite refusal is kept anew. */
async function refuse(deps: Deps, use: KeyUse, error: unknown): Promise<StoredAnswer> {
  const answer = definiteRefusal(error);
  if (!answer) throw error;
  const claim = await deps.db.transaction(async (tx) => {
    const mine = await claimFor(deps, tx, use);
    if (mine.kind === 'mine') await keep(tx, use, mine.owner, answer);
    return mine;
  });
  if (claim.kind === 'stored') return claim.answer;
  throw error;
}

async function keep(db: Db, use: KeyUse, owner: string, answer: Answer): Promise<void> {
  await storeAnswer(db, use, owner, { httpStatus: answer.status, body: answer.body });
}

function replay(ctx: Context, stored: StoredAnswer): void {
  ctx.set('Idempotent-Replayed', 'true');
  send(ctx, { status: stored.httpStatus, body: stored.body });
}

/** The answer of a refusal that a repeat would get again, or null for one that may pass. */
function definiteRefusal(thrown: unknown): Answer | null {
  if (thrown instanceof FieldsError) return null;
  const { code, message } = toDomainError(thrown);
  const { status, retryable } = ERRORS[code];
  const isDefinite = status === 400 && !retryable;
  return isDefinite ? errorAnswer(code, message) : null;
}

/** Rule: IF-4, IF-8. */
const KEY_PATTERN = /^[a-zA-Z0-9\-_:.]{1,255}$/;

function keyUseOf(ctx: Context): KeyUse | null {
  const key = ctx.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new DomainError(
      'bad_request',
      'Idempotency-Key: must be 1 to 255 characters of a-z, A-Z, 0-9, -, _, : and .',
    );
  }
  const route = ctx.state.route ?? '';
  const asked = canonicalJson([route, ctx.params, ctx.state.body ?? null], 0);
  const fingerprint = createHash('sha256').update(asked, 'utf8').digest();
  return { merchantId: callerOf(ctx).id, route, key, fingerprint };
}

/** Deeper bodies than this are no request of ours, and would exhaust the stack. */
const DEPTH_MAX = 64;

/** JSON with the keys of every object in order: the same request, however it was written. */
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
