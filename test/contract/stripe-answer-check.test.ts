import { describe, expect } from 'vitest';
import { createAnswerCheck } from '../../tools/stripe-double/answer-check.ts';
import { ENDPOINTS } from '../../tools/stripe-double/api.ts';
import { createStripeDouble } from '../../tools/stripe-double/server.ts';
import { onStripe as it, prepare, refusalOf, savedCard } from '../support/stripe.ts';

describe('the check of the Stripe double’s answers', () => {
  it('accepts an expanded PaymentIntent and names each wrong field of a PaymentIntent', async ({
    world,
  }) => {
    const { stripe, files } = world;
    const { id } = await prepare(stripe, await savedCard(stripe));
    const paid = await stripe.paymentIntents.confirm(id, {
      off_session: true,
      expand: ['latest_charge', 'payment_method', 'customer'],
    });
    const body = JSON.parse(JSON.stringify(paid)) as Record<string, unknown>;
    const check = await createAnswerCheck(files.specFile, ENDPOINTS);
    const place = { method: 'POST', path: '/v1/payment_intents/:id/confirm' };
    const problems = (change: object) => check(place, 200, { ...body, ...change }).join('\n');
    expect(problems({})).toBe('');
    expect(problems({ colour: 'red' })).toContain('"colour"');
    expect(problems({ amount: '1999' })).toContain('#/amount: Instance type "string"');
    expect(problems({ status: 'paid' })).toContain('#/status: Instance does not match any of');
    expect(problems({ id: undefined })).toContain('required property "id"');
    expect(problems({ currency: null })).toContain('#/currency');
    const charge = { ...(body['latest_charge'] as object), paid: 'yes' };
    expect(problems({ latest_charge: charge })).toContain('#/latest_charge');

    const refused = { error: { type: 'card_error', message: 'no', colour: 'red' } };
    expect(check(place, 402, refused).join('\n')).toContain('"colour"');
  });

  it('has a schema for every endpoint of the double', async ({ world }) => {
    const check = await createAnswerCheck(world.files.specFile, ENDPOINTS);
    const unknown = ENDPOINTS.filter(({ method, path }) =>
      check({ method, path }, 200, {}).some((problem) => problem.includes('the document has no')),
    );
    expect(unknown).toEqual([]);
  });

  it('refuses an OpenAPI document of another API version', async ({ world }) => {
    const check = { stripeMockUrl: world.mock.url, specFile: 'package.json' };
    await expect(createStripeDouble({ ...world.doubleOptions, check })).rejects.toThrow(
      'package.json is of an unknown API version, not of 2026-08-26.dahlia.',
    );
  });
});

describe('the Stripe double', () => {
  it('refuses an endpoint and a parameter that only Stripe has', async ({ world }) => {
    const { stripe } = world;
    const manual = { amount: 500, currency: 'usd', transfer_group: 'a' };
    expect(await refusalOf(stripe.paymentIntents.create(manual))).toMatchObject({
      statusCode: 501,
      message:
        'The Stripe double does not have the parameter transfer_group of POST /v1/payment_intents.',
    });
    expect(await refusalOf(stripe.products.list())).toMatchObject({
      statusCode: 501,
      message: 'The Stripe double does not have GET /v1/products.',
    });
  });
});
