import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { RequestFields } from './operation.ts';

/** A JSON Schema of the 2020-12 dialect, which is that of OpenAPI 3.1. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * JSON Schemas of zod types, as what they take in: an optional field may be null, and what is
 * transformed later shows as it is sent. Schemas with an `id` become components, named by it.
 */
export class SchemaBook {
  readonly components: Record<string, JsonSchema> = {};

  /** The schema, with references into {@link components}. */
  of(type: z.ZodType): JsonSchema {
    // As an entry of something, a type with an id is a reference like everywhere else.
    const { items, $defs = {} } = forOpenApi(
      z.toJSONSchema(z.array(type), { io: 'input', unrepresentable: 'any' }),
    ) as { items: JsonSchema; $defs?: Record<string, JsonSchema> };
    for (const [id, definition] of Object.entries($defs)) this.#add(id, definition);
    return items;
  }

  /** The schema of an object with these fields, each with what is said of it. */
  ofFields({ shape, notes }: RequestFields): JsonSchema {
    const schema = this.of(z.object(shape));
    const properties = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
    return {
      ...schema,
      properties: Object.fromEntries(
        properties.map(([name, property]) => [name, { ...property, ...noteOf(notes[name]) }]),
      ),
    };
  }

  #add(id: string, definition: JsonSchema): void {
    const known = this.components[id];
    if (known !== undefined && !isDeepStrictEqual(known, definition)) {
      throw new Error(`two schemas are called ${id}`);
    }
    this.components[id] = definition;
  }
}

/** What is said of a field, in the words of OpenAPI. */
export function noteOf(note: RequestFields['notes'][string] | undefined): JsonSchema {
  if (note === undefined) return {};
  const { description, isExtension } = note;
  return { description, ...(isExtension ? { 'x-extension': true } : {}) };
}

/** References point to components; bounds that say no more than "a safe integer" are left out. */
function forOpenApi(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(forOpenApi);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    if (key === '$ref') return [[key, String(member).replace('#/$defs/', '#/components/schemas/')]];
    if (member === Number.MAX_SAFE_INTEGER || member === Number.MIN_SAFE_INTEGER) return [];
    return [[key, forOpenApi(member)]];
  });
  return Object.fromEntries(entries);
}
