import { readFile } from 'node:fs/promises';
import { dereference, validate } from '@cfworker/json-schema';
import type { Schema } from '@cfworker/json-schema';
import type { StripeObject } from './errors.ts';
import { API_VERSION } from './events.ts';
import { KINDS } from './kinds.ts';

export type AnswerCheck = (
  endpoint: { readonly method: string; readonly path: string },
  status: number,
  body: StripeObject,
) => string[];

const ROOT = 'https://stripe/';

/** Also refuses unknown fields. Interprets the schemas: compiling them takes seconds, as all objects nest. */
export async function createAnswerCheck(
  specFile: string,
  endpoints: readonly { readonly method: string; readonly path: string }[],
): Promise<AnswerCheck> {
  const wanted = new Set(endpoints.map(({ method, path }) => keyOf(method, path)));
  const spec = JSON.parse(await readFile(specFile, 'utf8')) as Spec;
  const version = spec.info?.version ?? 'an unknown API version';
  if (version !== API_VERSION) {
    throw new Error(`${specFile} is of ${version}, not of ${API_VERSION}.`);
  }
  const schemas: Record<string, Schema> = {};
  const missing = new Set(['error']);
  const convert = (schema: unknown): Schema => converted(schema, (name) => missing.add(name));

  const answers: Record<string, Schema> = {};
  for (const [path, operations] of Object.entries(spec.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const schema = operation.responses?.['200']?.content?.['application/json']?.schema;
      const key = keyOf(method, path);
      if (schema !== undefined && wanted.has(key)) answers[key] = convert(schema);
    }
  }
  // The schemas that answers of these endpoints can contain. `convert` adds names to the set during the loop,
  // and the loop also visits these names.
  for (const name of missing) schemas[name] = convert(spec.components.schemas[name]);
  const errors: Schema = { $ref: '#/components/schemas/error' };
  const lookup = dereference({ $id: ROOT, components: { schemas }, answers, errors });

  return ({ method, path }, status, body) => {
    const schema = status === 200 ? answers[keyOf(method, path)] : errors;
    if (schema === undefined) return [`the document has no ${method} ${path}`];
    // JSON omits undefined fields, so they are no part of the answer.
    const sent: unknown = JSON.parse(JSON.stringify(body));
    const { valid, errors: found } = validate(sent, schema, '7', lookup, false);
    return valid ? [] : found.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
  };
}

interface Spec {
  readonly info?: { readonly version: string };
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly responses?: Readonly<
    Record<string, { content?: Record<string, { schema?: StripeObject }> }>
  >;
}

/** All path parameters get the same name, as in the double's own paths. */
function keyOf(method: string, path: string): string {
  return `${method.toLowerCase()} ${path.replaceAll(/\{\w+\}/g, ':id')}`;
}

/** The objects of Stripe that the double has. Ids of other objects are not expanded. */
const EXPANDED = new Set<string>(Object.keys(KINDS));
const PLACE = '#/components/schemas/';

/** Converts OpenAPI 3.0 to JSON Schema, in which every object allows only the listed fields. */
function converted(schema: unknown, onReference: (name: string) => void): Schema {
  const { properties, nullable, ...rest } = schema as StripeObject;
  const isExpandable = 'x-expansionResources' in rest;
  const inner = (value: unknown): Schema => converted(value, onReference);
  const own: Schema = {};
  for (const [name, value] of Object.entries(rest)) {
    if (name.startsWith('x-') || name === 'description' || name === 'title') continue;
    const isSchema = typeof value === 'object' && value !== null;
    if (name === 'anyOf') own[name] = choices(value, isExpandable).map(inner);
    else if ((name === 'items' || name === 'additionalProperties') && isSchema) {
      own[name] = inner(value);
    } else own[name] = value;
    if (name === '$ref') onReference(String(value).slice(PLACE.length));
  }
  if (properties !== undefined) {
    const fields = Object.entries(properties as StripeObject);
    own['properties'] = Object.fromEntries(fields.map(([name, each]) => [name, inner(each)]));
    if (fields.length > 0) own['additionalProperties'] ??= false;
  }
  return nullable === true ? { anyOf: [{ type: 'null' }, own] } : own;
}

/** If an id can be expanded, an object is an alternative only if the double has its kind. */
function choices(value: unknown, isExpandable: boolean): unknown[] {
  const all = value as { readonly $ref?: string }[];
  if (!isExpandable) return all;
  return all.filter(({ $ref }) => $ref === undefined || EXPANDED.has($ref.slice(PLACE.length)));
}
