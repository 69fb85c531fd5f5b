import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../api/http/frame.ts';
import { createDocument } from '../../api/openapi/document.ts';
import { breakingChanges } from '../support/breaking-changes.ts';

const settings = { publicUrl: 'https://pay.example', testCards: [] };
const present = createDocument(OPERATIONS, settings);
const released = () =>
  JSON.parse(readFileSync('test/architecture/released-document.json', 'utf8')) as Shape;

/** The parts of the document that the tests below change. */
interface Shape {
  [section: string]: unknown;
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, unknown>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  parameters: { name: string; required?: boolean; schema: Schema }[];
  responses: Record<string, unknown>;
}

interface Schema {
  type?: unknown;
  enum?: string[];
  maximum?: number;
  maxLength?: number;
  pattern?: string;
  anyOf?: unknown[];
  properties: Record<string, Schema>;
  required: string[];
}

const schema = ({ components }: Shape, name: string): Schema => components.schemas[name]!;
const field = (document: Shape, name: string, property: string): Schema =>
  schema(document, name).properties[property]!;

describe('the OpenAPI document', () => {
  it('breaks no client of the last release [IF-9]', () => {
    const advice =
      'A client of the last release would break. Add a field or an operation instead, or agree on a new version.';
    expect(breakingChanges(released(), present), advice).toEqual([]);
  });
});

const ORDER = 'CreateSubscriptionRequest';
const ANSWER = 'CreateSubscriptionAnswer';
const CREATE = 'POST /subscription/create';

describe('the comparison with the last release', () => {
  it.each<[string, (changed: Shape) => unknown, string]>([
    [
      'a removed operation',
      ({ paths }) => delete paths['/subscription/create']!['post'],
      `${CREATE} is removed`,
    ],
    [
      'a removed event type',
      ({ webhooks }) => delete webhooks['intent.success'],
      'POST intent.success is removed',
    ],
    [
      'a removed query parameter',
      ({ paths }) => paths['/events']!['get']!.parameters.shift(),
      'GET /events: query after is removed',
    ],
    [
      'a query parameter that is required now',
      ({ paths }) => (paths['/events']!['get']!.parameters[0]!.required = true),
      'GET /events: query after is required now',
    ],
    [
      'a removed field of a request',
      (changed) => delete schema(changed, ORDER).properties['receiptId'],
      `${CREATE}: body.receiptId is removed`,
    ],
    [
      'a field of a request that is required now',
      (changed) => schema(changed, ORDER).required.push('receiptId'),
      `${CREATE}: body.receiptId is required now`,
    ],
    [
      'a new required field of a request',
      (changed) => {
        schema(changed, ORDER).properties['plan'] = { type: 'string' } as Schema;
        schema(changed, ORDER).required.push('plan');
      },
      `${CREATE}: body.plan is required now`,
    ],
    [
      'a narrower enum of a request',
      (changed) => schema(changed, 'IntervalUnit').enum!.shift(),
      `${CREATE}: body.interval: DAY is refused now`,
    ],
    [
      'another type in a request',
      (changed) => (field(changed, ORDER, 'amount').type = 'string'),
      `${CREATE}: body.amount: type integer became string`,
    ],
    [
      'a new limit of a request',
      (changed) => (field(changed, ORDER, 'amount').maximum = 100),
      `${CREATE}: body.amount: maximum is stricter`,
    ],
    [
      'a removed field of an answer',
      (changed) => delete schema(changed, ANSWER).properties['fwdUrl'],
      `${CREATE}: 200.fwdUrl is removed`,
    ],
    [
      'a field of an answer that may be absent now',
      (changed) => schema(changed, ANSWER).required.pop(),
      `${CREATE}: 200.fwdUrl may be absent now`,
    ],
    [
      'another type in an answer',
      (changed) => (field(changed, ANSWER, 'fwdUrl').type = ['string', 'null']),
      `${CREATE}: 200.fwdUrl: type string became string or null`,
    ],
    [
      'a removed field of an event',
      (changed) => delete schema(changed, 'SubscriptionEvent').properties['currentPeriodEnd'],
      'POST subscription.ended: body.currentPeriodEnd is removed',
    ],
  ])('reports %s', (_, change, problem) => {
    const changed = released();
    change(changed);
    expect(breakingChanges(released(), changed)).toContain(problem);
  });

  it.each<[string, (changed: Shape) => unknown]>([
    ['nothing', () => undefined],
    ['a new operation', ({ paths }) => (paths['/plan'] = paths['/events']!)],
    [
      'a new optional field of a request',
      (changed) => (schema(changed, ORDER).properties['plan'] = { type: 'string' } as Schema),
    ],
    [
      'a field of a request that is optional now',
      (changed) => schema(changed, ORDER).required.shift(),
    ],
    [
      'a wider enum of a request',
      (changed) => schema(changed, 'IntervalUnit').enum!.push('DECADE'),
    ],
    [
      'a new field of an answer',
      (changed) => {
        schema(changed, ANSWER).properties['plan'] = { type: 'string' } as Schema;
        schema(changed, ANSWER).required.push('plan');
      },
    ],
    [
      'a new value of an enum of an answer',
      (changed) => schema(changed, 'ErrorCode').enum!.push('too_early'),
    ],
  ])('allows %s', (_, change) => {
    const changed = released();
    change(changed);
    expect(breakingChanges(released(), changed)).toEqual([]);
  });
});
