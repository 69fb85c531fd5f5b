export interface Mutant {
  readonly defect: string;
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  readonly test: string;
  /** Runs only the tests whose name contains this text, if the defect makes many others hang. */
  readonly only?: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    defect: 'every send of an attempt uses a new gateway key',
    file: 'activities/charging/charge-exchange.ts',
    find: '    ...chargeRefOf(attempt),\n    gatewayMethodId',
    replace:
      '    ...chargeRefOf(attempt),\n    key: `${attempt.gatewayKey}:${performance.now()}`,\n    gatewayMethodId',
    test: 'test/harm/double-charge.test.ts',
  },
  {
    defect: 'events are written outside the transaction that causes them',
    file: 'db/repositories/subscriptions/write-change.ts',
    find: 'await appendDrafts(tx, order, drafts, written?.source);',
    replace: 'void appendDrafts(db, order, drafts, written?.source).catch(() => undefined);',
    test: 'test/integration/subscription-hazards.test.ts',
  },
  {
    defect: 'each billing date is computed from the previous date',
    file: 'domain/calendar.ts',
    find: '  const anchor = civilOf(anchorAt);\n  const month = anchor.month +',
    replace:
      '  if (index > 1) return cycleAt(cycleAt(anchorAt, unit, count, index - 1), unit, count, 1);\n' +
      '  const anchor = civilOf(anchorAt);\n  const month = anchor.month +',
    test: 'test/unit/calendar.test.ts',
  },
  {
    defect: 'two attempts of one intent may be open at once',
    file: 'db/migrations/20261130032007_1.0.0/migration.sql',
    find: 'CREATE UNIQUE INDEX "payment_attempt__one_open__uq"',
    replace: 'CREATE INDEX "payment_attempt__one_open__uq"',
    test: 'test/harm/double-charge.test.ts',
  },
  {
    defect: 'an intent may be paid twice',
    file: 'db/migrations/20261130032007_1.0.0/migration.sql',
    find: 'CREATE UNIQUE INDEX "payment_attempt__one_success__uq"',
    replace: 'CREATE INDEX "payment_attempt__one_success__uq"',
    test: 'test/harm/double-charge.test.ts',
  },
  {
    defect: 'a 5xx answer is stored under its idempotency key',
    file: 'api/http/idempotency.ts',
    find: 'const isDefinite = status === 400 && !retryable;',
    replace: 'const isDefinite = status >= 400 || retryable;',
    test: 'test/api/subscriptions/commands.test.ts',
  },
  {
    defect: 'a simulated decline is never used up',
    file: 'domain/subscription/simulate.ts',
    find: '    if (found) found.left -= 1;\n',
    replace: '',
    test: 'test/api/subscriptions/simulate.test.ts',
  },
  {
    defect: 'the ledger forgets the entry of a changed row',
    file: 'db/repositories/subscriptions/write-change.ts',
    find: 'return entry ? withEntry(tx, write, entry) : write;',
    replace: 'return entry && state.version % 5 ? withEntry(tx, write, entry) : write;',
    test: 'test/integration/charges.test.ts',
  },
  {
    defect: 'the ledger forgets the retry plan of a decline',
    file: 'domain/subscription/apply-attempt.ts',
    find: '      plan: outcome.retryPlan,\n',
    replace: '',
    test: 'test/unit/ledger.test.ts',
  },
  {
    defect: 'the cooldown is lost at continue-as-new',
    file: 'workflows/subscription/workflow.ts',
    find: 'return next({\n    state,\n    entries,',
    replace: 'return next({\n    state: { ...state, cooldownUntilAt: null },\n    entries,',
    test: 'test/workflows/subscription-life.test.ts',
  },
  {
    defect: 'a command is validated when it arrives and not again before it is executed',
    file: 'workflows/subscription/handlers.ts',
    find: '  if (!decision.ok) {\n    refuse(decision);',
    replace: "  if (!decision.ok && decision.message === '') {\n    refuse(decision);",
    test: 'test/integration/subscription-hazards.test.ts',
  },
  {
    defect: 'a stale run overwrites the row',
    file: 'db/repositories/subscriptions/write-change.ts',
    find: 'const isBefore = isVersion({ ...state, version: state.version - 1 });',
    replace: 'const isBefore = isRecord(subscriptions, state.merchantId, state.subscriptionId);',
    test: 'test/harm/double-charge.test.ts',
  },
  {
    defect: "an opening goes on with another transition's attempt",
    file: 'db/repositories/subscriptions/open-attempt.ts',
    find: '    const isRecorded = opening\n      ? lastTransitionId === opening.transitionId\n      : row',
    replace:
      '  if (opening && row.version === state.version && lastTransitionId !== opening.transitionId)\n' +
      "    return { kind: 'opened', state, attempt: await readAttempt(tx, state), isFresh: false };\n" +
      '  const isRecorded = opening ? lastTransitionId === opening.transitionId : row',
    test: 'test/harm/stale-opener.test.ts',
  },
  {
    defect: "a repeated opening settles from its caller's state",
    file: 'db/repositories/subscriptions/open-attempt.ts',
    find: 'state: isSame ? state : row,',
    replace: 'state: isSame || row ? state : row,',
    test: 'test/harm/killed-between-commands.test.ts',
  },
  {
    defect: 'a repeated command is executed again',
    file: 'db/repositories/subscriptions/write-change.ts',
    find: 'const known = command && (await findCommand(tx, state, command.commandId));',
    replace:
      "const known = command && (await findCommand(tx, state, ''));\n" +
      '    if (command) command.commandId += `:${performance.now()}`;',
    test: 'test/integration/subscription-hazards.test.ts',
  },
  {
    defect: 'an edit changes an amount that is already owed',
    file: 'domain/subscription/apply-command.ts',
    find: 'owed: moved === undefined ? state.owed : owedMovedTo(state, moved, ordered(command)),',
    replace: 'owed: state.owed && { ...state.owed, amountMinor: terms.amountMinor },',
    test: 'test/unit/subscription-commands.test.ts',
  },
  {
    defect: 'an unread body stays on its connection',
    file: 'api/http/server.ts',
    find: 'if (await hasEnded(ctx.req)) return;',
    replace: 'if (ctx.req || (await hasEnded(ctx.req))) return;',
    test: 'test/api/protocol/refused-bodies.test.ts',
    only: 'when an API call with credentials has a body of 1000 kB',
  },
  {
    defect: 'attempts of other subscriptions on the card may be opened at the same time',
    file: 'db/repositories/subscriptions/attempts.ts',
    find: 'select pg_advisory_xact_lock(hashtextextended(${card}, 0))',
    replace: 'select ${card}',
    test: 'test/integration/card-limits.test.ts',
  },
  {
    defect: 'an undecided attempt does not count for the limits of its card',
    file: 'domain/card-limits.ts',
    find: 'const atOnce = Array.from({ length: undecided }, () => now);',
    replace: 'const atOnce = Array.from({ length: 0 * undecided }, () => now);',
    test: 'test/unit/card-limits.test.ts',
  },
  {
    defect: 'a manual retry moves the automatic retries',
    file: 'domain/subscription/apply-attempt.ts',
    find: "const AUTOMATIC: readonly AttemptTrigger[] = ['scheduled', 'automatic_retry', 'new_method'];",
    replace:
      "const AUTOMATIC: readonly AttemptTrigger[] = ['scheduled', 'automatic_retry', 'new_method', 'manual_retry'];",
    test: 'test/integration/manual-retry.test.ts',
  },
  {
    defect: 'a test clock skips due times on its way to the target',
    file: 'workflows/subscription/run.ts',
    find: 'isReached ? until : targetAt)',
    replace: 'isReached ? targetAt : targetAt)',
    test: 'test/integration/test-clock.test.ts',
  },
  {
    defect: 'every send of a refund uses a new gateway key',
    file: 'activities/orders/refunds.ts',
    find: 'gatewayKey: key, gatewayChargeId, amountMinor, currency }: Refund) {\n  return { key,',
    replace:
      'gatewayKey, gatewayChargeId, amountMinor, currency }: Refund) {\n' +
      '  const key = `${gatewayKey}:${performance.now()}`;\n  return { key,',
    test: 'test/harm/double-refund.test.ts',
  },
  {
    defect: 'open refunds do not reduce the refundable amount',
    file: 'db/repositories/payments/refunds.ts',
    find: "ne(refunds.state, 'REFUSED'),",
    replace: "eq(refunds.state, 'SUCCEEDED'),",
    test: 'test/harm/double-refund.test.ts',
  },
  {
    defect: 'a delivery answered 500 counts as delivered',
    file: 'activities/webhooks/attempt.ts',
    find: 'httpStatus >= 200 && httpStatus < 300',
    replace: 'httpStatus >= 200 && httpStatus < 600',
    test: 'test/harm/lost-webhook.test.ts',
  },
  {
    defect: 'the last use of a link can be taken twice',
    file: 'db/repositories/subscriptions/links.ts',
    find: 'used >= link.multiUseLimit || ',
    replace: '',
    test: 'test/api/links/uses.test.ts',
  },
  {
    defect: 'a charge that the gateway did not receive is sent again after a cancellation',
    file: 'domain/subscription/apply-command.ts',
    find: "      openAttempt: voided(state.openAttempt, 'cancel'),\n",
    replace: '',
    test: 'test/integration/subscription-outages.test.ts',
  },
  {
    defect: 'a charge that the gateway did not receive is sent although the subscription ends',
    file: 'domain/subscription/apply-command.ts',
    find: '{ cancelAtPeriodEnd: true, openAttempt, resumeAt: null }',
    replace: '{ cancelAtPeriodEnd: true, resumeAt: null }',
    test: 'test/integration/voided-attempts.test.ts',
  },
  {
    defect: 'a charge that a pause has voided is sent after the unpause',
    file: 'domain/subscription/apply-command.ts',
    find: "voided(state.openAttempt, 'pause')",
    replace: 'state.openAttempt',
    test: 'test/integration/voided-attempts.test.ts',
  },
  {
    defect: 'a payment method that the payer has replaced is charged',
    file: 'domain/subscription/apply-command.ts',
    find: "voided(state.openAttempt, 'replacePaymentMethod')",
    replace: 'state.openAttempt',
    test: 'test/integration/voided-attempts.test.ts',
  },
  {
    defect: 'a payment that the payer does not confirm is never withdrawn',
    file: 'activities/charging/charge-exchange.ts',
    find: '(isLate || payerLeftAt !== null || isSuperseded)',
    replace: '(payerLeftAt !== null || isSuperseded)',
    test: 'test/integration/payer-confirmation.test.ts',
  },
  {
    defect: 'a voided attempt that was sent gets no late-charge watch',
    file: 'db/repositories/subscriptions/attempts.ts',
    find: 'if (isUnproven(settlement))',
    replace: "if (isUnproven(settlement) && attempt.state === 'UNKNOWN')",
    test: 'test/integration/review-attempts.test.ts',
  },
  {
    defect: "a signal's argument is not validated",
    file: 'workflows/subscription/handlers.ts',
    find: 'run.refuseSignal(kind, read.message);',
    replace: 'post(run, { ...(given as object), kind, commandId: uuid4() } as Command);',
    test: 'test/integration/operator-signals.test.ts',
  },
  {
    defect: 'a sweep sends a charge whose caller got no answer and cannot repeat it',
    file: 'db/repositories/sweeps/queries.ts',
    find: '      not(isUnkeyedPayment()),\n',
    replace: '',
    test: 'test/integration/temporal-away.test.ts',
  },
  {
    defect: 'a command overtakes the advance of the test clock before it',
    file: 'workflows/subscription/workflow.ts',
    find: 'facts.isCommandAfterAdvance ? (dueStep(facts) ?? advance(facts)) : null;',
    replace: 'facts.isCommandAfterAdvance && facts.isBackingOff ? dueStep(facts) : null;',
    test: 'test/integration/test-clock.test.ts',
  },
  {
    defect: 'a test clock is at its target although its run is older than the row',
    file: 'db/repositories/subscriptions/row.ts',
    find: '.where(isVersion(at))',
    replace: '.where(isRow(at))',
    test: 'test/integration/stale-run.test.ts',
  },
  {
    defect: 'a run goes on from a row that is older than the run',
    file: 'workflows/subscription/steps.ts',
    find: '      run.needsResync = true;\n      return false;',
    replace: '      run.adopt(state);\n      return true;',
    test: 'test/harm/restored-database.test.ts',
  },
  {
    defect: 'the date of an owed cycle is the next due date, too',
    file: 'domain/subscription/state.ts',
    find: "status === 'UNPAID' ? Math.max(1, nextIndex) : nextIndex",
    replace: 'status && nextIndex',
    test: 'test/unit/owed-cycle-dates.test.ts',
  },
  {
    defect: 'the id of an order does not come from its idempotency key',
    file: 'db/repositories/merchants/idempotency-keys.ts',
    find: 'JSON.stringify([merchantId, route, key])',
    replace: 'JSON.stringify([merchantId, route, key, randomUUID()])',
    test: 'test/harm/restored-database.test.ts',
  },
  {
    defect: "the id of a cycle's intent is random",
    file: 'domain/ids.ts',
    find: "  const body = subscriptionId.slice('sub_'.length);",
    replace:
      "  const body = subscriptionId.slice('sub_'.length).replace(/.{8}$/, () => String(Math.random()).slice(-8));",
    test: 'test/harm/restored-database.test.ts',
    only: 'books the charge that the gateway has',
  },
];
