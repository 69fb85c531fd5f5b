export * from './merchants.ts';
export * from './customers.ts';
export * from './subscriptions.ts';
export * from './payments.ts';
export * from './checkouts.ts';
export * from './webhooks.ts';
export * from './sweeps.ts';
export * from './gateway-events.ts';
