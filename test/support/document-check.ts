import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { createDocument, templateOf } from '../../api/openapi/document.ts';
import type { JsonSchema } from '../../api/openapi/json-schema.ts';
import { OPERATIONS } from '../../api/http/frame.ts';

/** An answer as a client receives it. */
export interface HeardAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

type Json = Record<string, unknown>;

/**
 * Compares calls with the OpenAPI document. The check is stricter than a client may be: an
 * undocumented field in an answer is a problem, too.
 */
export function createDocumentCheck(document: JsonSchema) {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  for (const format of ['int64', 'int32']) ajv.addFormat(format, true);
  ajv.addSchema({ ...document, $id: 'request:' });
  ajv.addSchema({ ...(withoutMore(document) as JsonSchema), $id: 'answer:' });
  const compiled = new Map<string, ValidateFunction>();

  /** The problems of a value under the schema at a pointer of the document. */
  function problemsAt(side: 'request' | 'answer', pointer: string, value: unknown): string[] {
    const place = `${side}:${pointer}`;
    const validate = compiled.get(place) ?? ajv.compile({ $ref: place });
    compiled.set(place, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message = '', params }) => {
      return `${instancePath} ${message} ${JSON.stringify(params)}`;
    });
  }

  const at = (pointer: string): Json =>
    pointer
      .slice(2)
      .split('/')
      .reduce((value: unknown, key) => (value as Json)[unescaped(key)], document) as Json;

  /** The target of the reference at a pointer, or the pointer itself. */
  function resolved(pointer: string): string {
    const { $ref } = at(pointer);
    return typeof $ref === 'string' ? $ref : pointer;
  }

  function problemsOfAnswer(pointer: string, answer: HeardAnswer): string[] {
    const responses = at(`${pointer}/responses`);
    if (!Object.hasOwn(responses, String(answer.status))) {
      return [`status ${answer.status} is not documented: ${answer.text}`];
    }
    const response = resolved(`${pointer}/responses/${answer.status}`);
    const { content, headers = {} } = at(response) as { content?: Json; headers?: Json };
    return [
      ...Object.keys(headers).flatMap((name) => {
        const place = resolved(`${response}/headers/${name}`);
        const value = answer.headers[name.toLowerCase()];
        if (value !== undefined) return problemsAt('answer', `${place}/schema`, value);
        return at(place)['required'] === true ? [`header ${name} is missing`] : [];
      }),
      ...(content === undefined
        ? problemsOfEmpty(answer)
        : problemsOfJson(`${response}/content/application~1json/schema`, answer)),
      ...problemsOfCode(`${response}/content/application~1json`, answer),
    ];
  }

  function problemsOfJson(pointer: string, answer: HeardAnswer): string[] {
    const type = String(answer.headers['content-type']);
    if (!type.startsWith('application/json')) return [`content type ${type}`];
    return problemsAt('answer', pointer, JSON.parse(answer.text));
  }

  /** An answer with an error has an example for each of its error codes. */
  function problemsOfCode(pointer: string, { status, text }: HeardAnswer): string[] {
    if (status < 400) return [];
    const { errorCode } = JSON.parse(text) as { errorCode: string };
    const isListed = Object.hasOwn(at(`${pointer}/examples`), errorCode);
    return isListed ? [] : [`error code ${errorCode} is not documented for this answer`];
  }

  const documented = namesIn(JSON.stringify(document));

  /** The names of a description that the caller knows neither from the document nor from the request. */
  function problemsOfDescription({ status, text }: HeardAnswer, given: Set<string>): string[] {
    if (status < 400) return [];
    const { errorDescription = '' } = JSON.parse(text) as { errorDescription?: string };
    return [...namesIn(errorDescription)]
      .filter((name) => !documented.has(name) && !given.has(name))
      .map((name) => `the description has a name that is not documented: ${name}`);
  }

  /** Removes empty strings of optional fields: by the document's text, such a field counts as absent. */
  function withoutEmpty(pointer: string, body: unknown): unknown {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
    const required = new Set(at(pointer)['required'] as string[] | undefined);
    return Object.fromEntries(
      Object.entries(body).filter(([name, value]) => value !== '' || required.has(name)),
    );
  }

  return {
    problemsAt,
    /** The differences between an event and its description in the document. */
    problemsOfEvent(event: { readonly eventType: string }): string[] {
      const { eventType } = event;
      if (!Object.hasOwn(at('#/webhooks'), eventType)) return [`${eventType} is not documented`];
      const pointer = `#/webhooks/${eventType}/post/requestBody/content/application~1json/schema`;
      return problemsAt('answer', pointer, event).map((problem) => `${eventType} ${problem}`);
    },
    /**
     * The differences between a call and the document. Empty for an undocumented route. The body of
     * the request is checked when the answer is 2xx.
     */
    problemsOfCall(method: string, url: string, body: unknown, answer: HeardAnswer): string[] {
      const given = namesIn(`${url} ${JSON.stringify(body) ?? ''}`);
      const pointer = operationPointer(method, url.split('?')[0] ?? '');
      if (pointer === undefined) return [];
      const request = `${pointer}/requestBody/content/application~1json/schema`;
      const isAccepted = answer.status < 300 && body !== undefined;
      const hasBody = Object.hasOwn(at(pointer), 'requestBody');
      return [
        ...problemsOfAnswer(pointer, answer),
        ...problemsOfDescription(answer, given),
        ...(isAccepted && hasBody
          ? problemsAt('request', request, withNumber(pointer, withoutEmpty(request, body)))
          : []),
      ];
    },
  };
}

export type DocumentCheck = ReturnType<typeof createDocumentCheck>;

/** Creates a check against the OpenAPI document that the API serves. */
export function defaultDocumentCheck(): DocumentCheck {
  return createDocumentCheck(
    createDocument(OPERATIONS, { publicUrl: 'https://pay.example', testCards: [] }),
  );
}

/** Words in camel case. */
function namesIn(text: string): Set<string> {
  return new Set(text.match(/\b[a-z]+(?:[A-Z][a-z0-9]*)+\b/g));
}

function operationPointer(method: string, path: string): string | undefined {
  const served = OPERATIONS.filter((operation) => pathPattern(operation.path).test(path));
  const literal = served.filter((operation) => !operation.path.includes(':'));
  const operation = (literal.length > 0 ? literal : served).find(
    (candidate) => candidate.method === method.toLowerCase(),
  );
  if (operation === undefined) return undefined;
  const key = templateOf(operation.path).replaceAll('~', '~0').replaceAll('/', '~1');
  return `#/paths/${key}/${operation.method}`;
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}$`);
}

function problemsOfEmpty({ text }: HeardAnswer): string[] {
  return text === '' ? [] : [`a body where there is none: ${text}`];
}

/** By the document's text, the amount of a refund may also be a string of digits. */
function withNumber(pointer: string, body: unknown): unknown {
  if (!pointer.includes('refund')) return body;
  const { amount, ...rest } = body as Json;
  return typeof amount === 'string' ? { ...rest, amount: Number(amount) } : body;
}

function unescaped(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** The document with `additionalProperties: false` in every object. */
function withoutMore(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMore);
  if (typeof value !== 'object' || value === null) return value;
  const copy: Json = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, withoutMore(member)]),
  );
  const isObject = copy['type'] === 'object' && 'properties' in copy;
  return isObject ? { additionalProperties: false, ...copy } : copy;
}
