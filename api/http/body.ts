import type { z } from 'zod';
import type { IncomingMessage } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import rawBody from 'raw-body';
import type { RawBodyError } from 'raw-body';
import { DomainError } from '../../domain/errors.ts';
import { pathText, repeatedMember } from './json.ts';
import type { Context } from './request.ts';

const BODY_LIMIT_BYTES = 524_288;

/** Methods whose requests must have a body, also of a route that declares no fields. */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** Reads JSON in UTF-8, at most 512 kB. Undefined for a method without a body, and for an absent optional body. */
export async function readJsonBody(request: IncomingMessage, isOptional = false): Promise<unknown> {
  if (!METHODS_WITH_BODY.has(request.method ?? '') || (isOptional && isEmpty(request))) return;
  return readJson(request);
}

function isEmpty({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;\s*charset="?utf-?8"?\s*)?$/i.test(contentType)) {
    throw bodyProblem('must be sent with Content-Type: application/json');
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw bodyProblem('must be sent without Content-Encoding');
  }
  const text = await readText(request, BODY_LIMIT_BYTES);
  const body = parseJson(text);
  const repeated = repeatedMember(text);
  if (repeated !== null) {
    throw problemsError([{ field: repeated.slice(0, SHOWN_PATH_MAX), message: GIVEN_TWICE }]);
  }
  return body;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw bodyProblem('must be valid JSON');
  }
}

/** The problem of a member that an object has twice: `JSON.parse` would take the last value without a word. */
export const GIVEN_TWICE = 'is given twice';

/**
 * Returns the body as text.
 * @throws DomainError `bad_request` for more than `limitBytes`, for a body that ends too early, and for bytes that
 * are not UTF-8.
 */
export async function readText(request: IncomingMessage, limitBytes: number): Promise<string> {
  const bytes = await readBytes(request, limitBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw bodyProblem('must be UTF-8');
  }
}

/** Returns the raw body. Throws `bad_request` for more than `limitBytes`, and for a body that ends too early. */
export async function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  try {
    const length = request.headers['content-length'] ?? null;
    return await rawBody(request, { limit: limitBytes, length });
  } catch (error) {
    const isTooLarge = (error as RawBodyError).type === 'entity.too.large';
    if (isTooLarge) throw bodyProblem(`must be at most ${limitBytes / 1024} kB`);
    // The client closed the connection, so it does not get this answer.
    if (request.destroyed) throw bodyProblem('must arrive completely');
    throw error;
  }
}

function bodyProblem(problem: string): DomainError {
  return new DomainError('bad_request', `body: ${problem}`);
}

/** One problem of a request. `field` is the path of the invalid field, for example `metadata.order`. */
export interface Problem {
  readonly field: string;
  readonly message: string;
}

export type Shape = Readonly<Record<string, z.ZodType>>;
export type Fields<S extends Shape> = z.output<z.ZodObject<S>>;

type Rules<S extends Shape> = (fields: Partial<Fields<S>>) => Problem[];

/**
 * Reads the fields of a JSON body; ignores others. `rules` checks several fields together, and gets only valid ones.
 * @throws DomainError `bad_request` naming every invalid field by its path, in the order of the shape.
 */
export function readFields<S extends Shape>(shape: S, body: unknown, rules?: Rules<S>): Fields<S> {
  const { fields, problems } = checkFields(shape, body, rules);
  refuseProblems(problems);
  return fields;
}

/** Like {@link readFields}, but returns the problems of `rules`. Throws if a field is invalid by itself. */
export function checkFields<S extends Shape>(
  shape: S,
  body: unknown,
  rules: Rules<S> = () => [],
): { fields: Fields<S>; problems: readonly Problem[] } {
  if (!isPlainObject(body)) {
    throw problemsError([{ field: 'body', message: 'must be a JSON object' }]);
  }
  const fields: Record<string, unknown> = {};
  const problems: Problem[] = [];
  const report = (problem: Problem): void => {
    if (!problems.some(({ field }) => field === problem.field)) problems.push(problem);
  };
  for (const [name, schema] of Object.entries(shape)) {
    const given = Object.hasOwn(body, name) ? body[name] : undefined;
    const result = schema.safeParse(given, { error: describeIssue });
    if (result.success) {
      if (result.data !== undefined) fields[name] = inGivenOrder(given, result.data);
      continue;
    }
    for (const issue of result.error.issues) {
      report({ field: pathText([name, ...issue.path]), message: issue.message });
    }
  }
  const areValid = problems.length === 0;
  // The casts are safe, because the loop above stored only values that the shape accepted.
  for (const problem of rules(fields as Partial<Fields<S>>)) report(problem);
  const ordered = inOrderOf(Object.keys(shape), problems);
  if (!areValid) throw problemsError(ordered);
  return { fields: fields as Fields<S>, problems: ordered };
}

/** Optional fields that are empty strings count as absent, but those in `kept` stay. */
export function withoutEmpty(shape: Shape, body: unknown, kept: readonly string[] = []): unknown {
  if (!isPlainObject(body)) return body;
  const isAbsent = ([name, value]: [string, unknown]): boolean =>
    value === '' && !kept.includes(name) && isOptional(shape, name);
  return Object.fromEntries(Object.entries(body).filter((entry) => !isAbsent(entry)));
}

/** True if none of the fields is absent. */
export function hasFields<T extends object, Name extends keyof T>(
  fields: T,
  names: readonly Name[],
): fields is T & { [Each in Name]-?: Exclude<T[Each], undefined> } {
  return names.every((name) => fields[name] !== undefined);
}

/** Uses `hasOwn`, because a field of the body may have an inherited name such as `toString`. */
function isOptional(shape: Shape, name: string): boolean {
  return Object.hasOwn(shape, name) && shape[name]?.safeParse(undefined).success === true;
}

/**
 * Refuses parameters that the route does not have, so that a misspelt filter is noticed. `sent` is not Koa's
 * `ctx.query`, whose cache answers the query `__proto__` or `toString` with an inherited member.
 */
export function readQuery<Query extends Shape>(shape: Query, sent: ParsedUrlQuery): Fields<Query> {
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
/** The same for the path of a field. */
const SHOWN_PATH_MAX = 200;
const IGNORED_NAMES_MAX = 20;
/** Maximum length of the header `Ignored-Fields`, in characters. */
const IGNORED_FIELDS_MAX = 1_000;

export function nameIgnoredFields(ctx: Context, shape: Shape, fields: Fields<Shape>): void {
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

/** Returns whether the request wants unknown fields to be refused. Throws `bad_request` for another value. */
export function refusesUnknownFields(ctx: Context): boolean {
  const wish = ctx.get(UNKNOWN_FIELDS);
  const problem = { field: UNKNOWN_FIELDS, message: 'must be refuse, or absent' };
  if (wish !== '' && wish !== 'refuse') throw problemsError([problem]);
  return wish === 'refuse';
}

const UNKNOWN_FIELDS = 'Unknown-Fields';

export function unknownFieldProblems(...body: Parameters<typeof ignoredFields>): Problem[] {
  return ignoredFields(...body)
    .slice(0, IGNORED_NAMES_MAX)
    .map((path) => ({
      field: path.slice(0, SHOWN_PATH_MAX),
      message: 'is not a field of this request',
    }));
}

/** In the order of the body, for example `customerDetails.title`. `fields`: the parsed body. */
export function ignoredFields(
  shape: Shape,
  body: unknown,
  fields: Readonly<Record<string, unknown>>,
): string[] {
  if (!isPlainObject(body)) return [];
  return Object.entries(body).flatMap(([name, given]) =>
    Object.hasOwn(shape, name) ? ignoredIn(name, given, fields[name]) : [name],
  );
}

function ignoredIn(path: string, given: unknown, read: unknown): string[] {
  if (Array.isArray(given) && Array.isArray(read)) {
    return given.flatMap((entry, index) => ignoredIn(`${path}[${index}]`, entry, read[index]));
  }
  if (!isPlainObject(given) || !isPlainObject(read)) return [];
  return Object.entries(given).flatMap(([name, member]) => {
    if (Object.hasOwn(read, name)) return ignoredIn(`${path}.${name}`, member, read[name]);
    return member === '' ? [] : [`${path}.${name}`];
  });
}

/** Returns the parsed value with the members of every object in the order of the request. */
function inGivenOrder(given: unknown, read: unknown): unknown {
  if (!isPlainObject(given) || !isPlainObject(read)) return read;
  return Object.fromEntries(
    Object.keys(given)
      .filter((key) => Object.hasOwn(read, key))
      .map((key) => [key, inGivenOrder(given[key], read[key])]),
  );
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A refusal of the request's fields, or by limits that may change. It is not stored under an Idempotency-Key. */
export class UnstoredRefusal extends DomainError {}

export function refuseProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw problemsError(problems);
}

export function problemsError(problems: readonly Problem[]): UnstoredRefusal {
  const text = problems.map(({ field, message }) => `${field}: ${message}`).join('; ');
  return new UnstoredRefusal('bad_request', text);
}

function inOrderOf(names: readonly string[], problems: readonly Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => names.indexOf(/^[^.[]+/.exec(field)?.[0] ?? '');
  return problems.toSorted((a, b) => rank(a) - rank(b));
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'must be a string',
  object: 'must be an object',
  array: 'must be an array',
  boolean: 'must be true or false',
};

/** Returns a message without the field's name, such as `is required`. A schema's own message replaces it. */
function describeIssue(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined || issue.input === null) return 'is required';
  if (issue.code === 'invalid_type') return EXPECTED[issue.expected] ?? 'is not valid';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_big') return `must have at most ${issue.maximum} entries`;
  return 'is not valid';
}
