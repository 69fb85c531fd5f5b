import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Operation } from '../http/route.ts';

export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Converts zod types to JSON Schemas of their input: an optional field may be null. A schema with an `id` becomes a
 * component of that name.
 */
export class SchemaBook {
  readonly components: Record<string, JsonSchema> = {};

  of(type: z.ZodType): JsonSchema {
    // Zod writes a `$ref` to a type with an id only if the type is inside another type, such as this array.
    const { items, $defs = {} } = forOpenApi(
      z.toJSONSchema(z.array(type), { io: 'input', unrepresentable: 'any' }),
    ) as { items: JsonSchema; $defs?: Record<string, JsonSchema> };
    for (const [id, definition] of Object.entries($defs)) this.#add(id, definition);
    return items;
  }

  /** A reference to a component named after the operation, or to the component that the type already is. */
  named(of: Operation, role: 'Request' | 'Answer', type: z.ZodType): JsonSchema {
    const schema = this.of(type);
    if ('$ref' in schema) return schema;
    const name = of.operationId.charAt(0).toUpperCase() + of.operationId.slice(1) + role;
    this.#add(name, schema);
    return { $ref: `#/components/schemas/${name}` };
  }

  #add(id: string, definition: JsonSchema): void {
    const known = this.components[id];
    if (known !== undefined && !isDeepStrictEqual(known, definition)) {
      throw new Error(`two schemas are called ${id}`);
    }
    this.components[id] = definition;
  }
}

/**
 * Changes references to point to the components. Drops bounds that only mean "a safe integer". Moves the
 * description of a nullable type out of its `anyOf`, because code generators ignore descriptions inside `anyOf`.
 * They ignore `const`, too, so it becomes an enum of one value.
 */
function forOpenApi(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(forOpenApi);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    if (key === '$ref') return [[key, String(member).replace('#/$defs/', '#/components/schemas/')]];
    if (key === 'const') return [['enum', [member]]];
    if (member === Number.MAX_SAFE_INTEGER || member === Number.MIN_SAFE_INTEGER) return [];
    return [[key, forOpenApi(member)]];
  });
  return withDescriptionOutside(Object.fromEntries(entries));
}

function withDescriptionOutside(schema: JsonSchema): JsonSchema {
  const anyOf = schema['anyOf'] as JsonSchema[] | undefined;
  const [described, ...others] = anyOf?.filter((type) => type['type'] !== 'null') ?? [];
  if (schema['description'] !== undefined || !described || others.length > 0) return schema;
  const { description, ...type } = described;
  if (description === undefined) return schema;
  return {
    ...schema,
    description,
    anyOf: anyOf?.map((one) => (one === described ? type : one)),
  };
}
