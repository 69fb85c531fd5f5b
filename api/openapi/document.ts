import { z } from 'zod';
import type { PublishedTestCard } from '../../gateways/port.ts';
import type { Shape } from '../http/body.ts';
import { describeApi } from './description.ts';
import { ERROR_SCHEMAS, errorResponses, header, HEADERS, SHARED_RESPONSES } from './errors.ts';
import { EVENT_CALLBACK, eventSchema, webhooksOf } from './events.ts';
import { SchemaBook } from './json-schema.ts';
import type { JsonSchema } from './json-schema.ts';
import { TAGS } from '../http/route.ts';
import type { Examples, Operation } from '../http/route.ts';

export interface DocumentSettings {
  readonly publicUrl: string;
  readonly testCards: readonly PublishedTestCard[];
}

/** `info.version` is the version of the interface, not of the program. */
export function createDocument(
  operations: readonly Operation[],
  { publicUrl, testCards }: DocumentSettings,
): JsonSchema {
  const book = new SchemaBook();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const operation of operations) {
    const path = templateOf(operation.path);
    paths[path] = { ...paths[path], [operation.method]: operationObject(book, operation) };
  }
  const webhooks = webhooksOf(book);
  return {
    openapi: '3.1.0',
    info: { title: 'Perennial', version: '1.0.0', description: describeApi(testCards) },
    servers: [{ url: publicUrl }],
    security: [{ basic: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks,
    components: {
      schemas: { ...ERROR_SCHEMAS, Event: eventSchema(book), ...book.components },
      responses: SHARED_RESPONSES,
      headers: HEADERS,
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      securitySchemes: {
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'User: the key id. Password: the secret.',
        },
      },
    },
  };
}

export function templateOf(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

const IDEMPOTENCY_KEY: JsonSchema = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Your own key for this request. Requests with the same key are executed once.',
  schema: { type: 'string', maxLength: 255, pattern: '^[a-zA-Z0-9\\-_:\\.]+$' },
};

function operationObject(book: SchemaBook, operation: Operation): JsonSchema {
  const { operationId, tag, summary, description, isExtension, isOpen, body } = operation;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(isExtension ? { 'x-extension': true } : {}),
    ...(isOpen ? { security: [] } : {}),
    parameters: parametersOf(book, operation),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: body.isOptional !== true,
            content: json(book.named(operation, 'Request', z.object(body.fields)), body.examples),
          },
        }),
    'x-codeSamples': [{ lang: 'curl', source: curlOf(operation) }],
    ...(operation.sendsEvents ? { callbacks: { event: EVENT_CALLBACK } } : {}),
    responses: { ...answerOf(book, operation), ...errorResponses(operation) },
  };
}

/** For a shell that has API_URL, KEY_ID and SECRET. */
function curlOf({ method, path, params = {}, idempotencyKey, isOpen, body }: Operation): string {
  const place = path.replaceAll(/:(\w+)/g, (_, name: string) => params[name]?.example ?? name);
  const data = JSON.stringify(Object.values(body?.examples ?? {})[0])?.replaceAll("'", "'\\''");
  return [
    `curl -X ${method.toUpperCase()} "$API_URL${place}"`,
    ...(isOpen ? [] : ['-u "$KEY_ID:$SECRET"']),
    ...(idempotencyKey === undefined ? [] : ['-H "Idempotency-Key: $(uuidgen)"']),
    ...(data === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${data}'`]),
  ].join(' \\\n  ');
}

function parametersOf(book: SchemaBook, operation: Operation): JsonSchema[] {
  const { params = {}, query, idempotencyKey, isCacheable, body } = operation;
  return [
    ...Object.entries(params).map(([name, { description, example }]) => ({
      name,
      in: 'path',
      required: true,
      description,
      schema: { type: 'string' },
      example,
    })),
    ...(query === undefined ? [] : queryParameters(book, query)),
    ...keyParameter(idempotencyKey),
    ...(isCacheable ? [IF_NONE_MATCH] : []),
    ...(body === undefined ? [] : [UNKNOWN_FIELDS]),
  ];
}

const UNKNOWN_FIELDS: JsonSchema = {
  name: 'Unknown-Fields',
  in: 'header',
  required: false,
  description: '`refuse`: a field of the body that is not in this document is answered 400.',
  schema: { type: 'string', pattern: '^refuse$' },
  'x-extension': true,
};

const IF_NONE_MATCH: JsonSchema = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of an earlier answer.',
  schema: { type: 'string' },
};

function keyParameter(listed: Operation['idempotencyKey']): JsonSchema[] {
  if (listed === undefined) return [];
  const reference = { $ref: '#/components/parameters/IdempotencyKey' };
  // OpenAPI ignores `x-extension` next to a `$ref`, so an extension contains the whole parameter.
  return [listed === 'listed' ? reference : { ...IDEMPOTENCY_KEY, 'x-extension': true }];
}

/** A query parameter is never null, so null is removed from its schema. */
function queryParameters(book: SchemaBook, query: Shape): JsonSchema[] {
  const schema = book.of(z.object(query));
  const properties = schema['properties'] as Record<string, JsonSchema>;
  const required = new Set(schema['required'] as string[] | undefined);
  return Object.entries(properties).map(([name, { description, ...property }]) => {
    const { 'x-extension': isExtension, ...rest } = property;
    return {
      name,
      in: 'query',
      required: required.has(name),
      description,
      ...(isExtension ? { 'x-extension': true } : {}),
      ...listStyleOf(withoutNull(rest)),
    };
  });
}

/** The values of a list are separated by commas. */
const listStyleOf = (schema: JsonSchema) =>
  schema['type'] === 'array' ? { style: 'form', explode: false, schema } : { schema };

function withoutNull(schema: JsonSchema): JsonSchema {
  const choices = schema['anyOf'] as JsonSchema[] | undefined;
  const left = choices?.filter(({ type }) => type !== 'null');
  return left?.[0] !== undefined && left.length === 1 ? left[0] : schema;
}

function answerOf(book: SchemaBook, operation: Operation): Record<string, JsonSchema> {
  const { answer, body, idempotencyKey, isCacheable } = operation;
  const headers = {
    'Request-Id': header('Request-Id'),
    ...(idempotencyKey === undefined
      ? {}
      : { 'Idempotent-Replayed': header('Idempotent-Replayed') }),
    ...(body === undefined ? {} : { 'Ignored-Fields': header('Ignored-Fields') }),
    ...(isCacheable ? { ETag: header('ETag') } : {}),
  };
  if (answer === 'no content') return { '204': { description: 'Done.', headers } };
  const { description, schema, examples, status = 200 } = answer;
  return {
    [status]: {
      description,
      headers,
      content: json(book.named(operation, 'Answer', schema), examples),
    },
    ...(isCacheable ? { '304': { description: 'Unchanged.', headers } } : {}),
  };
}

function json(schema: JsonSchema, examples: Examples): JsonSchema {
  return {
    'application/json': {
      schema,
      examples: Object.fromEntries(
        Object.entries(examples).map(([summary, value]) => [summary, { summary, value }]),
      ),
    },
  };
}
