import { parse as parseQuery } from 'node:querystring';
import type { ParsedUrlQuery } from 'node:querystring';
import type { Router } from '@koa/router';
import type { z } from 'zod';
import { DomainError } from '../domain/errors.ts';
import { send } from './answers.ts';
import type { Answer } from './answers.ts';
import { callerOf } from './context.ts';
import type { Context, Merchant, RequestState } from './context.ts';
import type { ApiDeps } from './deps.ts';
import { checkFields, ignoredFields, readFields, refuseProblems, withoutEmpty } from './fields.ts';
import type { Fields, Problem, Shape } from './fields.ts';
import { keyUseOf } from './idempotency.ts';
import type { KeyedCall } from './idempotency.ts';
import { changesSomething } from './openapi/operation.ts';
import type { Operation, OperationAnswer, ParamNote, RequestBody } from './openapi/operation.ts';

type ParamOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type NoFields = Readonly<Record<string, z.ZodNever>>;

export interface Call<
  Path extends string = string,
  Query extends Shape = Shape,
  Body extends Shape = Shape,
> extends KeyedCall {
  readonly merchant: Merchant;
  readonly params: Readonly<Record<ParamOf<Path>, string>>;
  readonly query: Fields<Query>;
  readonly body: Fields<Body>;
}

/** The compiler checks the answers of `handle`, and the examples, against `answer.schema`. */
interface Declaration<
  Path extends string,
  Query extends Shape,
  Body extends Shape,
  Schema extends z.ZodType,
> extends Omit<Operation, 'path' | 'params' | 'query' | 'body' | 'answer' | 'isOpen'> {
  readonly path: Path;
  readonly params?: Readonly<Record<ParamOf<Path>, ParamNote>>;
  readonly query?: Query;
  readonly body?: RequestBody<Body> & {
    /** For other optional fields an empty string counts as absent. */
    readonly refusesEmpty?: readonly (keyof Body & string)[];
    /** Checks several fields together. Gets only the fields that are valid by themselves. */
    readonly problems?: (fields: Partial<Fields<Body>>, deps: ApiDeps) => Problem[];
  };
  readonly answer: OperationAnswer<Schema> | 'no content';
  readonly isTestOnly?: true;
  readonly isReadLimited?: true;
  /** Of a merchant's costly requests one runs at a time. Every route with a `limit` is costly. */
  readonly isCostly?: true;
  readonly handle: (
    call: Call<NoInfer<Path>, Query, Body>,
    deps: ApiDeps,
  ) => Promise<Answer<z.input<Schema>>>;
}

export interface Route extends Operation {
  readonly isReadLimited?: true;
  readonly isCostly?: true;
  readonly serve: (deps: ApiDeps) => (ctx: Context) => Promise<void>;
}

/** Checks the credential, `isTestOnly`, the query, each field of the body, the Idempotency-Key, then `problems`. */
export function route<
  const Path extends string,
  Schema extends z.ZodType,
  Query extends Shape = NoFields,
  Body extends Shape = NoFields,
>(declaration: Declaration<Path, Query, Body, Schema>): Route {
  const { handle, isTestOnly, ...operation } = declaration;
  const { query, body } = operation;
  const isChange = changesSomething(declaration);
  const serve = (deps: ApiDeps) => async (ctx: Context) => {
    const merchant = callerOf(ctx);
    if (merchant.isReadOnly && isChange) throw new DomainError('read_only_credential');
    if (isTestOnly && merchant.mode !== 'test') {
      throw new DomainError('operation_not_allowed', `${declaration.tag} need test credentials.`);
    }
    // If the body is refused, the answer names the ignored fields of its first level.
    nameIgnoredFields(ctx, body?.fields ?? {}, {});
    const queryFields = readQuery(query ?? ({} as Query), parseQuery(ctx.querystring));
    const { fields, problems } = readBody(declaration, ctx.state.body, deps);
    nameIgnoredFields(ctx, body?.fields ?? {}, fields);
    const keyUse = declaration.idempotencyKey === undefined ? null : keyUseOf(ctx);
    // With a key they are refused after its claim, so that a repeat gets its answer also under new limits.
    if (keyUse === null) refuseProblems(problems);
    const call = {
      merchant,
      params: ctx.params as Call<Path>['params'],
      query: queryFields,
      body: fields,
      problems,
      keyUse,
      late: ctx.state.late,
    };
    send(ctx, await handle(call, deps));
  };
  return { ...operation, serve };
}

function readBody<Body extends Shape>(
  { body }: Pick<Declaration<string, Shape, Body, z.ZodType>, 'body'>,
  sent: unknown,
  deps: ApiDeps,
): ReturnType<typeof checkFields<Body>> {
  if (body === undefined) return { fields: {} as Fields<Body>, problems: [] };
  const given = sent === undefined && body.isOptional ? {} : sent;
  const present = withoutEmpty(body.fields, given, body.refusesEmpty);
  return checkFields(body.fields, present, (fields) => body.problems?.(fields, deps) ?? []);
}

/**
 * Refuses parameters that the route does not have, so that a misspelt filter is noticed. `sent` is not Koa's
 * `ctx.query`, whose cache answers the query `__proto__` or `toString` with an inherited member.
 */
function readQuery<Query extends Shape>(shape: Query, sent: ParsedUrlQuery): Fields<Query> {
  const unknown = Object.keys(sent).filter((name) => !Object.hasOwn(shape, name));
  return readFields(shape, sent, () =>
    unknown.map((name) => ({
      field: name.slice(0, SHOWN_NAME_MAX),
      message: 'is not a parameter of this request',
    })),
  );
}

/** Answers cut longer names of fields and parameters to this number of characters. */
const SHOWN_NAME_MAX = 64;
const IGNORED_NAMES_MAX = 20;
/** Maximum length of the header `Ignored-Fields`, in characters. */
const IGNORED_FIELDS_MAX = 1_000;

function nameIgnoredFields(ctx: Context, shape: Shape, fields: Fields<Shape>): void {
  const ignored = ignoredFields(shape, ctx.state.body, fields).slice(0, IGNORED_NAMES_MAX);
  if (ignored.length === 0) return;
  // The conversion to UTF-8 replaces lone surrogates, which encodeURIComponent refuses.
  const names = ignored.map((name) =>
    encodeURIComponent(Buffer.from(name.slice(0, SHOWN_NAME_MAX)).toString()),
  );
  let text = '';
  for (const name of names) {
    const longer = text === '' ? name : `${text}, ${name}`;
    if (longer.length > IGNORED_FIELDS_MAX) break;
    text = longer;
  }
  ctx.set('Ignored-Fields', text);
}

type Middleware = (ctx: Context, next: () => Promise<unknown>) => Promise<void>;

export function registerRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  routes: readonly Route[],
  limits: Readonly<Record<'readLimit' | 'costlyInTurn', Middleware>>,
): void {
  for (const { method, path, query, isReadLimited, isCostly, serve } of routes) {
    const first = [
      ...(isReadLimited ? [limits.readLimit] : []),
      ...(isCostly || query?.['limit'] ? [limits.costlyInTurn] : []),
    ];
    router[method](path, ...first, serve(deps));
  }
}
