import { describe, expect, it } from 'vitest';
import { createRouters, OPERATIONS } from '../../api/http/frame.ts';
import type { ApiDeps } from '../../api/deps.ts';
import { createDocument } from '../../api/openapi/document.ts';
import { errorCodesOf } from '../../api/openapi/errors.ts';
import { ERRORS } from '../../domain/errors.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import { createDocumentCheck } from '../support/document-check.ts';

type Json = Record<string, unknown>;

const document = createDocument(OPERATIONS, {
  publicUrl: 'https://pay.example',
  testCards: [{ number: '4242424242424242', label: 'pays' }],
}) as Json & { paths: Record<string, Record<string, Json>> };

const nameOf = ({ method, path }: { method: string; path: string }): string =>
  `${method.toUpperCase()} ${path}`;

const { open, merchants } = createRouters(
  {
    publicUrl: 'https://pay.example',
    testCards: [],
    rateLimits: { windowSeconds: 1, requests: 1_000, readsOfOneSubscription: 1_000 },
  } as unknown as ApiDeps,
  async () => undefined,
);

const routesOf = (router: typeof merchants) =>
  router.stack.flatMap((layer) =>
    layer.methods
      .filter((method) => method !== 'HEAD')
      .map((method) => ({ method, path: String(layer.path) })),
  );

describe('the OpenAPI document', () => {
  it('describes every merchant route, GET /openapi.json and no other route [D-§7]', () => {
    const served = routesOf(merchants).map(nameOf);
    expect(OPERATIONS.map(nameOf).toSorted()).toEqual([...served, 'GET /openapi.json'].toSorted());
    expect(routesOf(open).map(nameOf)).toContain('GET /openapi.json');
  });

  it('describes the path parameters of every route [D-§7]', () => {
    const wrong = OPERATIONS.filter(({ path, params = {} }) => {
      const named = [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => parameter!);
      return named.toSorted().join() !== Object.keys(params).toSorted().join();
    });
    expect(wrong.map(nameOf)).toEqual([]);
  });

  it('gives every operation a unique name [D-§7]', () => {
    const ids = OPERATIONS.map(({ operationId }) => operationId);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
  });

  it('describes a nullable field beside its anyOf, where code generators read it [D-§7]', () => {
    expect(hiddenDescriptions(document)).toEqual([]);
    const { SubscriptionEvent } = (document['components'] as Record<string, Json>)[
      'schemas'
    ] as Json;
    const { properties } = SubscriptionEvent as { properties: Record<string, Json> };
    expect(properties['cycleNumber']).toEqual({
      description: 'Number of the cycle, from 1.',
      anyOf: [{ type: 'integer', minimum: 0, format: 'int64' }, { type: 'null' }],
    });
  });

  it('describes every event type [IF-6, D-50]', () => {
    expect(Object.keys(document['webhooks'] as Json)).toEqual(EVENT_TYPES);
  });

  it('names every error code, except those of unknown routes and methods [D-§8]', () => {
    const used = new Set<string>(OPERATIONS.flatMap(errorCodesOf));
    const unused = Object.keys(ERRORS).filter((code) => !used.has(code));
    expect(unused).toEqual(['route_not_found', 'method_not_allowed']);
  });

  it('is OpenAPI 3.1 and carries the version of the interface [IF-9, D-§7]', () => {
    expect([document['openapi'], (document['info'] as Json)['version']]).toEqual([
      '3.1.0',
      '1.0.0',
    ]);
  });

  it('allows further fields in every object, so that an answer can gain fields', () => {
    expect(JSON.stringify(document)).not.toContain('"additionalProperties":false');
  });

  it('writes nullable types, limits and constants as generators of clients read them [D-§7]', () => {
    const text = JSON.stringify(document);
    expect(text).not.toMatch(/"(exclusiveM\w+|const|nullable)":/);
    const lists = text.match(/"type":\[[^\]]*\]/g) ?? [];
    expect(lists.filter((list) => !/\["\w+","null"\]$/.test(list))).toEqual([]);
  });

  it('contains every target of its references', () => {
    const missing = referencesIn(document).filter((pointer) => valueAt(pointer) === undefined);
    expect(missing).toEqual([]);
  });

  it('marks the routes beyond the agreed interface as extensions, and lists Idempotency-Key for ten routes [D-§7]', () => {
    const marked = OPERATIONS.filter(({ isExtension }) => isExtension).map(nameOf);
    expect(marked.toSorted()).toEqual([
      'DELETE /customer/:customerId/payment-method-tokens/:pmId',
      'DELETE /webhook/:webhookConfigId',
      'GET /consents',
      'GET /customer',
      'GET /customer/:customerId/payment-method-tokens',
      'GET /customer/:customerId/state',
      'GET /declarations',
      'GET /events',
      'GET /events/:eventId',
      'GET /events/:eventId/deliveries',
      'GET /merchant/settings',
      'GET /openapi.json',
      'GET /payments',
      'GET /payments/get-intent/:xIntentId',
      'GET /payments/v2/get-intent/:xIntentId',
      'GET /refund',
      'GET /setup-method/:setupMethodId',
      'GET /subscription',
      'GET /subscription/charges/:subscriptionId',
      'GET /subscription/timeline/:subscriptionId',
      'GET /subscription/upcoming/:subscriptionId',
      'GET /test-clock/:testClockId',
      'GET /webhook/:webhookConfigId/deliveries',
      'GET /webhook/recoveries/:recoveryId',
      'POST /customer/portal',
      'POST /events/:eventId/resend',
      'POST /link/merchant/generate-link',
      'POST /payments/create-intent',
      'POST /payments/merchant/refund',
      'POST /subscription/merchant/pause',
      'POST /subscription/merchant/resume',
      'POST /subscription/simulate',
      'POST /test-clock/advance',
      'POST /test-clock/create',
      'POST /test-helpers/decline-next',
      'POST /webhook',
      'POST /webhook/:webhookConfigId/ping',
      'POST /webhook/:webhookConfigId/recover',
      'PUT /customer/:customerId',
    ]);
    const listed = OPERATIONS.filter(({ idempotencyKey }) => idempotencyKey === 'listed');
    expect(listed.map(nameOf).toSorted()).toEqual([
      'POST /customer/create',
      'POST /payments/cancel/:xIntentId',
      'POST /payments/charge-tokenised-pm',
      'POST /setup-method/create',
      'POST /subscription/create',
      'POST /subscription/edit',
      'POST /subscription/link/merchant/generate-link',
      'POST /subscription/manual-retry',
      'POST /subscription/merchant/cancel',
      'POST /subscription/merchant/one-time-charge',
    ]);
  });
});

describe('the check of answers against the document', () => {
  const check = createDocumentCheck(document);
  const headers = { 'content-type': 'application/json; charset=utf-8', 'request-id': 'req_1' };
  const created = (status: number, body: unknown, changes: Record<string, string> = {}) =>
    check.problemsOfCall('POST', '/customer/create', undefined, {
      status,
      headers: { ...headers, ...changes },
      text: JSON.stringify(body),
    });

  it('accepts a documented answer', () => {
    expect(created(200, { customerId: 'cus_1' })).toEqual([]);
  });

  it.each([
    ['an undocumented status', created(418, {})],
    ['an extra field', created(200, { customerId: 'cus_1', name: 'Ada' })],
    ['a missing field', created(200, {})],
    ['a field of another type', created(200, { customerId: 1 })],
    [
      'a name in the description that neither the document nor the request has',
      created(400, { errorCode: 'bad_request', errorDescription: 'customerNumber is wrong' }),
    ],
    ['an error code of another operation', created(400, error('payment_outcome_pending'))],
    [
      'another content type',
      created(200, { customerId: 'cus_1' }, { 'content-type': 'text/html' }),
    ],
    ['a missing header', created(409, error('idempotency_key_in_use'))],
    ['an event with a missing field', check.problemsOfEvent({ eventType: 'intent.created' })],
    ['an event of an unknown type', check.problemsOfEvent({ eventType: 'intent.lost' })],
  ])('reports %s', (_, problems) => {
    expect(problems).not.toEqual([]);
  });

  function error(errorCode: string): Json {
    return { errorCode, errorDescription: 'No.' };
  }
});

describe('the examples of the OpenAPI document', () => {
  const check = createDocumentCheck(document);
  const examples = examplesIn(document);

  it('exist for every request and every answer', () => {
    const without = contentsIn(document).filter(
      ({ content }) => Object.keys((content['examples'] ?? {}) as Json).length === 0,
    );
    expect(without.map(({ pointer }) => pointer)).toEqual([]);
    expect(examples.length).toBeGreaterThan(OPERATIONS.length);
  });

  it.each(examples.map((example) => [example.pointer, example] as const))(
    'contain no fields that contradict each other: %s',
    (_, { value }) => {
      expect(objectsIn(value).flatMap(contradictionsIn)).toEqual([]);
    },
  );

  it.each(examples.map((example) => [example.pointer, example] as const))(
    'match their schema: %s',
    (_, { schema, value }) => {
      expect(check.problemsAt('answer', schema, value)).toEqual([]);
    },
  );
});

/** Every object in an example, at any depth. */
function objectsIn(value: unknown): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  const members = Object.values(value).flatMap(objectsIn);
  return Array.isArray(value) ? members : [value as Json, ...members];
}

const PAID = ['SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED'];
const WITH_NEXT_DATE = ['TRIALING', 'ACTIVE', 'UNPAID'];

/** The contradictions between the fields of one object of an example. */
function contradictionsIn(object: Json): string[] {
  const { errorCode = null, errorMessage = null } = object;
  const status = object['status'] as string | undefined;
  const has = (field: string): boolean => (object[field] ?? null) !== null;
  const isIntent = 'chargeAttempts' in object;
  const isSubscription = 'subscriptionId' in object && 'nextPaymentDate' in object;
  const rules: Record<string, boolean> = {
    'exactly a paid intent has a successful charge':
      !isIntent ||
      ['succeededAt', 'succeededCharge'].every(
        (field) => has(field) === PAID.includes(status ?? ''),
      ),
    'only a failed or an owed payment has an error code':
      status === undefined || errorCode === null || ['FAILED', 'UNPAID'].includes(status ?? ''),
    'a failed payment has an error code': status !== 'FAILED' || has('errorCode'),
    'an error code and its message come together':
      !('errorMessage' in object) || (errorCode === null) === (errorMessage === null),
    'only TRIALING, ACTIVE and UNPAID have a next payment':
      !isSubscription || !has('nextPaymentDate') || WITH_NEXT_DATE.includes(status ?? ''),
    'exactly an ended subscription has an end reason':
      !isSubscription || has('endReason') === (status === 'ENDED'),
    'a subscription with paid cycles has a paid period':
      !('cycleCount' in object && 'remainingCycleCount' in object) ||
      object['remainingCycleCount'] === object['cycleCount'] ||
      has('currentPeriodEnd'),
    'success and error code agree':
      !('success' in object) || object['success'] === (errorCode === null),
  };
  return Object.entries(rules).flatMap(([rule, holds]) => (holds ? [] : [rule]));
}

/** The JSON pointers of the nullable schemas that have their description only inside `anyOf`. */
function hiddenDescriptions(value: unknown, pointer = '#'): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { anyOf, description } = value as { anyOf?: Json[]; description?: string };
  const isHidden =
    description === undefined &&
    anyOf?.some(({ type }) => type === 'null') === true &&
    anyOf.some((one) => one['description'] !== undefined);
  const inside = Object.entries(value).flatMap(([key, member]) =>
    hiddenDescriptions(member, `${pointer}/${key}`),
  );
  return isHidden ? [pointer, ...inside] : inside;
}

interface Content {
  pointer: string;
  content: Json;
}

/** Every value under `application/json` in the document, with its JSON pointer. */
function contentsIn(value: unknown, pointer = '#'): Content[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]): Content[] => {
    const place = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return key === 'application/json'
      ? [{ pointer: place, content: member as Json }]
      : contentsIn(member, place);
  });
}

function examplesIn(value: unknown): { pointer: string; schema: string; value: unknown }[] {
  return contentsIn(value).flatMap(({ pointer, content }) =>
    Object.entries((content['examples'] ?? {}) as Record<string, Json>).map(([name, example]) => ({
      pointer: `${pointer} ${name}`,
      schema: `${pointer}/schema`,
      value: example['value'],
    })),
  );
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === '$ref' ? [String(member)] : referencesIn(member),
  );
}

function valueAt(pointer: string): unknown {
  return pointer
    .slice(2)
    .split('/')
    .reduce<unknown>(
      (value, key) => (value as Json | undefined)?.[key.replaceAll('~1', '/')],
      document,
    );
}
