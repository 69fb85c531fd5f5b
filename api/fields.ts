import { z } from 'zod';
import { BILLING_HORIZON_AT, INSTANT_PROBLEM, isInstant } from '../domain/calendar.ts';
import { DomainError } from '../domain/errors.ts';
import { hasAtMost, isStorable } from '../domain/storable-text.ts';

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
  if (!isPlainObject(given) || !isPlainObject(read)) return [];
  return Object.entries(given).flatMap(([name, member]) =>
    Object.hasOwn(read, name)
      ? ignoredIn(`${path}.${name}`, member, read[name])
      : `${path}.${name}`,
  );
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

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The refusal of invalid fields. Unlike other refusals, it is not stored under an Idempotency-Key. */
export class FieldsError extends DomainError {}

export function refuseProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw problemsError(problems);
}

export function problemsError(problems: readonly Problem[]): FieldsError {
  const text = problems.map(({ field, message }) => `${field}: ${message}`).join('; ');
  return new FieldsError('bad_request', text);
}

function inOrderOf(names: readonly string[], problems: readonly Problem[]): Problem[] {
  const rank = ({ field }: Problem): number => names.indexOf(/^[^.[]+/.exec(field)?.[0] ?? '');
  return problems.toSorted((a, b) => rank(a) - rank(b));
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) => {
      if (typeof part === 'number') return `[${part}]`;
      return at === 0 ? String(part) : `.${String(part)}`;
    })
    .join('');
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

/** An optional field: null means absent. */
export function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** Text of at most `max` code points. */
export function text(max: number) {
  return limited(max)
    .refine(isStorable, { error: 'must be text without NUL characters and unpaired surrogates' })
    .meta({ maxLength: max });
}

/** Zod's own `max` counts UTF-16 units. */
function limited(max: number) {
  return z.string().refine((value) => hasAtMost(value, max), {
    error: `must have at most ${max} characters`,
  });
}

const ID_MAX = 64;

/** The id of a record. Only the length is checked; the handler looks the record up. */
export function idText() {
  return text(ID_MAX);
}

/** The message about a value that a custom type refuses. */
export const requiredOr =
  (message: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === undefined || input === null ? 'is required' : message;

/** JSON Schema of an instant in the OpenAPI document. Zod derives no JSON Schema from a custom type. */
const INSTANT_META = {
  type: 'integer',
  format: 'int64',
  minimum: 0,
  maximum: BILLING_HORIZON_AT - 1,
} as const;

export const instant = z
  .custom<number>(isInstant, {
    error: requiredOr(INSTANT_PROBLEM),
  })
  .meta(INSTANT_META);

export function wholeNumber(min: number) {
  return z
    .custom<number>((value) => Number.isSafeInteger(value) && Number(value) >= min, {
      error: requiredOr(`must be an integer of at least ${min}`),
    })
    .meta({ type: 'integer', format: 'int64', minimum: min });
}

const URL_LENGTH_MAX = 2_048;

export function httpUrl() {
  return limited(URL_LENGTH_MAX)
    .refine((value) => isHttpUrl(value), { error: 'must be an absolute http or https URL' })
    .meta({ maxLength: URL_LENGTH_MAX, format: 'uri', pattern: '^[hH][tT][tT][pP][sS]?://' });
}

function isHttpUrl(value: string): boolean {
  // The URL parser drops spaces and extra slashes. The patterns refuse such text, so that it never changes a URL.
  return (
    /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(value) &&
    isStorable(value) &&
    // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
    !/[\u0000-\u001f\u007f]/.test(value) &&
    URL.canParse(value)
  );
}

const METADATA_PAIRS_MAX = 50;
const METADATA_KEY_MAX = 40;
const METADATA_VALUE_MAX = 500;

export function metadata() {
  return metadataPairs().meta({
    type: 'object',
    maxProperties: METADATA_PAIRS_MAX,
    propertyNames: { maxLength: METADATA_KEY_MAX },
    additionalProperties: { type: 'string', maxLength: METADATA_VALUE_MAX },
  });
}

function metadataPairs() {
  return z.unknown().transform((value, ctx): Record<string, string> => {
    const problem = (message: string, path: string[] = []): void => {
      ctx.addIssue({ code: 'custom', message, path, input: value });
    };
    if (!isPlainObject(value)) {
      problem('must be an object');
      return z.NEVER;
    }
    const pairs = Object.entries(value);
    if (pairs.length > METADATA_PAIRS_MAX) {
      problem(`must have at most ${METADATA_PAIRS_MAX} pairs`);
      return z.NEVER;
    }
    if (pairs.some(([key]) => !hasAtMost(key, METADATA_KEY_MAX) || !isStorable(key))) {
      problem(`must have keys of at most ${METADATA_KEY_MAX} characters`);
    }
    for (const [key, member] of pairs) {
      if (!hasAtMost(key, METADATA_KEY_MAX)) continue;
      const isRight =
        typeof member === 'string' && hasAtMost(member, METADATA_VALUE_MAX) && isStorable(member);
      if (!isRight) problem(`must be a string of at most ${METADATA_VALUE_MAX} characters`, [key]);
    }
    return value as Record<string, string>; // every member was checked above
  });
}

/** A whole number in a query string, where every value is text. */
export function numberText(min: number, max: number) {
  return z
    .custom<string>(
      (value) =>
        typeof value === 'string' &&
        /^(0|[1-9]\d{0,14})$/.test(value) &&
        Number(value) >= min &&
        Number(value) <= max,
      { error: `must be an integer from ${min} to ${max}` },
    )
    .meta({ type: 'integer', minimum: min, maximum: max })
    .transform(Number);
}

export const instantText = z
  .custom<string>(
    (value) =>
      typeof value === 'string' && /^(0|[1-9]\d{0,14})$/.test(value) && isInstant(Number(value)),
    { error: INSTANT_PROBLEM },
  )
  .meta(INSTANT_META)
  .transform(Number);
