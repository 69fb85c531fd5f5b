import { createReadStream } from 'node:fs';
import PQueue from 'p-queue';
import type { Db } from '../../db/client.ts';
import { findImports, importSubscription, payerOf } from './rows.ts';
import type { EarlierImport } from './rows.ts';
import { noticeRulesOf } from '../../domain/notice-rules.ts';
import { loadSettings } from '../../db/repositories/merchants/settings.ts';
import type { MerchantSettings } from '../../db/schema/merchants.ts';
import { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import type { RandomBytes } from '../../domain/ids.ts';
import type { PaymentGateway, SavedCard } from '../../gateways/port.ts';
import { dateProblem, readImport, termsDifference } from './fields.ts';
import type { ReadImport } from './fields.ts';
import { linesOf } from './lines.ts';
import type { Line } from './lines.ts';
import { createMethodLookup } from './method-lookup.ts';
import { createTotals, describeImport, openReport } from './report.ts';
import type { ReportLine, Summary } from './report.ts';
import { createStarts } from './starts.ts';
import type { Starter } from './starts.ts';

const BATCH = 200;
const AT_ONCE = 10;
/** Maximum number of lines of a file: the ids of all lines are kept in memory. */
const LINES_MAX = 1_000_000;

export interface ImportDeps {
  readonly db: Db;
  readonly merchantId: string;
  readonly gateway: PaymentGateway;
  readonly workflows: Starter;
  readonly random: RandomBytes;
  readonly now: () => number;
  /** Decides how far the renewals of one instant are spread. */
  readonly renewalsPerSecond: number;
}

export interface ImportOptions {
  readonly file: string;
  readonly reportFile: string;
  readonly commit: boolean;
  readonly onLine: (bytes: number) => void;
  readonly onProblem: (line: ReportLine) => void;
}

export interface ImportResult extends Summary {
  /** Number of imported subscriptions whose workflow the maintenance sweep must start. */
  readonly notStarted: number;
}

interface Checked {
  readonly report: ReportLine;
  readonly given: ReadImport | null;
}

type Batch = readonly { readonly line: Line; readonly reading: ReturnType<typeof readLine> }[];

function chargingRules({ jitterMs: jitterWindowMs = null, ...settings }: MerchantSettings) {
  return { jitterWindowMs, noticeRules: noticeRulesOf(settings) };
}

/** With `commit`, each line is one transaction. A repeat completes a killed import. Throws if a server fails. */
export async function runImport(deps: ImportDeps, options: ImportOptions): Promise<ImportResult> {
  const ofMerchant = chargingRules(await loadSettings(deps.db, deps.merchantId));
  const lookup = createMethodLookup(deps.gateway);
  const places = new RenewalPlaces(deps.renewalsPerSecond);
  const starts = createStarts(deps.workflows);
  const totals = createTotals(deps.now());
  const lineOfId = new Map<string, number>();
  const queue = new PQueue({ concurrency: AT_ONCE });
  const report = await openReport(options.reportFile);

  const check = async (
    line: Line,
    reading: Batch[number]['reading'],
    earlier: EarlierImport | undefined,
  ): Promise<Checked> => {
    const { number } = line;
    if (reading.kind === 'problem') return problem(number, reading.importId, reading.problem);
    const { given } = reading;
    const { importId } = given;
    if (earlier !== undefined) return repeated(number, given, earlier);
    const refusal = dateProblem(given, deps.now()) ?? amountRefusal(deps.gateway, given);
    if (refusal !== null) return problem(number, importId, refusal);
    const found = await lookup(given);
    if (typeof found === 'string') return problem(number, importId, found);
    const described = { line: number, importId, ...describeImport(given, found) };
    const order = { ...importOf(deps, given, found), ...ofMerchant, places };
    if (!options.commit) {
      const payer = await payerOf(deps.db, order);
      if (typeof payer === 'string') return problem(number, importId, payer);
      return { report: { ...described, result: 'ok' }, given };
    }
    const outcome = await importSubscription(deps.db, order, deps.random);
    if (outcome.kind === 'refused') return problem(number, importId, outcome.reason);
    if (outcome.kind === 'repeated') return repeated(number, given, outcome.earlier);
    const { subscriptionId } = outcome;
    await starts.begin({ merchantId: deps.merchantId, subscriptionId });
    return { report: { ...described, subscriptionId, result: 'imported' }, given };
  };

  const finish = async (batch: Batch): Promise<void> => {
    const ids = batch.flatMap(({ reading }) =>
      reading.kind === 'read' ? [reading.given.importId] : [],
    );
    const earlier = await findImports(deps.db, deps.merchantId, ids);
    const checked = await queue.addAll(
      batch.map(({ line, reading }) => async () => {
        const id = reading.kind === 'read' ? reading.given.importId : '';
        const result = await check(line, reading, earlier.get(id));
        options.onLine(line.bytes);
        return result;
      }),
    );
    await report.add(checked.map(({ report: reported }) => reported));
    for (const { report: reported, given } of checked) {
      totals.add(reported.result, given);
      if (reported.result === 'problem') options.onProblem(reported);
    }
  };

  try {
    let batch: Batch[number][] = [];
    for await (const line of linesOf(createReadStream(options.file))) {
      if (line.text?.trim() === '') {
        options.onLine(line.bytes);
        continue;
      }
      if (line.number > LINES_MAX) throw new Error(`The file has more than ${LINES_MAX} lines.`);
      batch.push({ line, reading: readLine(line, lineOfId) });
      if (batch.length < BATCH) continue;
      await finish(batch);
      batch = [];
    }
    await finish(batch);
    return { ...totals.summary(), notStarted: await starts.end() };
  } finally {
    queue.clear();
    await queue.onIdle();
    await report.close();
  }
}

/** Reads a line, and refuses the import id of an earlier line, also of a line with a problem. */
function readLine({ number, text, problem: unreadable }: Line, lineOfId: Map<string, number>) {
  if (text === null) return { kind: 'problem' as const, importId: null, problem: `${unreadable}` };
  const reading = readImport(text);
  const importId = reading.kind === 'problem' ? reading.importId : reading.given.importId;
  if (importId === null) return reading;
  const first = lineOfId.get(importId);
  lineOfId.set(importId, first ?? number);
  const repeats = `importId: line ${first} has the same id`;
  return first === undefined || reading.kind === 'problem'
    ? reading
    : { kind: 'problem' as const, importId, problem: repeats };
}

function amountRefusal(gateway: PaymentGateway, { subscription }: ReadImport): string | null {
  const { amountMinor, currency } = subscription.terms;
  const refusal = gateway.amountProblem(amountMinor, currency, 'charge');
  return refusal === null ? null : `amount: ${refusal}`;
}

function problem(line: number, importId: string | null, text: string): Checked {
  return { report: { line, importId, result: 'problem', problem: text }, given: null };
}

function repeated(line: number, given: ReadImport, earlier: EarlierImport): Checked {
  const { importId } = given;
  const { subscriptionId } = earlier;
  const difference = termsDifference(earlier.terms, given.terms);
  if (difference !== null) {
    const text = `is imported as ${subscriptionId} with other terms: ${difference}`;
    return problem(line, importId, text);
  }
  return { report: { line, importId, result: 'already_imported', subscriptionId }, given };
}

function importOf(deps: ImportDeps, given: ReadImport, card: SavedCard) {
  const { importId, terms, gatewayCustomerId, order, subscription } = given;
  return {
    importId,
    terms,
    gateway: deps.gateway.name,
    gatewayCustomerId,
    card,
    order,
    subscription: { ...subscription, merchantId: deps.merchantId, importedAt: deps.now() },
  };
}
