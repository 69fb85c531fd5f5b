import { Argument, Option } from 'commander';
import { listCredentials, missingPeppers } from '../../db/repositories/merchants/credentials.ts';
import { changeSettings, findSettings } from '../../db/repositories/merchants/settings.ts';
import {
  createMerchantWithCredential,
  listMerchants,
} from '../../db/repositories/merchants/merchants.ts';
import { MERCHANT_MODES } from '../../db/schema/merchants.ts';
import type { MerchantMode } from '../../db/schema/merchants.ts';
import { merchantNameProblem } from './name.ts';
import type { Db } from '../../db/client.ts';
import {
  addCredentialCommands,
  credentialLine,
  secretLines,
  shownCredential,
} from './credentials.ts';
import { COMPANIES, PROCESSOR_NAMES, PROCESSORS } from '../../gateways/processors.ts';
import { createSealing } from '../../runtime/sealing.ts';
import {
  addChargingOptions,
  addPayerOptions,
  settingsChanges,
  settingsLines,
  shownSettings,
} from './configure.ts';
import type { ConfigureOptions } from './configure.ts';
import { configureGateway, readKey, readWebhookSecret, storeAccount } from './gateway.ts';
import type { GatewayOptions } from './gateway.ts';
import type { Place, Report } from './place.ts';
import { reencryptSecrets } from './reencrypt.ts';
import { operatorCommand } from '../command-line/options.ts';
import { byOption, recorder } from '../command-line/operator-action.ts';
import type { Surroundings } from '../command-line/options.ts';
import { commandPlace } from '../command-line/place.ts';
import { withDatabase } from '../command-line/servers.ts';
import { jsonText, printable } from '../command-line/terminal.ts';

interface CreateOptions extends Pick<GatewayOptions, 'keyFile' | 'webhookSecretFile'> {
  readonly name: string;
  readonly mode: MerchantMode;
  readonly gateway?: string;
}

const processorNamed = (gateway: string | undefined) =>
  PROCESSORS.find(({ name }) => name === gateway);

export const merchantCommand = operatorCommand(
  'merchant',
  'Merchants, their API credentials and their settings.',
  (program, surroundings) => {
    program.option('--json', 'print JSON instead of text').addOption(byOption());

    program
      .command('create')
      .description('create a merchant and its first credential')
      .requiredOption('--name <name>', 'shown to payers')
      .addOption(new Option('--mode <mode>').choices([...MERCHANT_MODES]).default('test'))
      .addOption(
        new Option('--gateway <name>').choices(PROCESSOR_NAMES).hideHelp(PROCESSORS.length === 1),
      )
      .option('--key-file <file>', `secret key of a ${COMPANIES} account; live merchants need one`)
      .option('--webhook-secret-file <file>', 'signing secret of the account’s webhook endpoint')
      .action((options: CreateOptions) => run((place) => create(place, options)));
    program
      .command('list')
      .description('list every merchant with its credentials')
      .action(() => run(list));
    addCredentialCommands(program, run);
    addPayerOptions(addChargingOptions(program.command('configure <merchantId>')))
      .description('change settings of a merchant; without options, print them')
      .option(
        '--notices <rules>',
        'when events tell of coming charges: default, off, or type:180d=40d,10d;…',
      )
      .addOption(
        new Option(
          '--charge-without-notice <yes>',
          'false: a charge waits until its notice had the fewest days of its rule',
        ).choices(['true', 'false']),
      )
      .option('--payment-methods <list>', 'methods of the hosted pages: CARD,GOOGLE_PAY,APPLE_PAY')
      .option('--statement-suffix <text>', 'what follows the account’s name on card statements')
      .option('--keep-events <days>', 'how long events can be read and sent again')
      .option('--keep-attempts <days>', 'how long failed attempts to send events can be read')
      .option('--logo <url>', 'https URL of the logo on the hosted pages; or none')
      .option('--colour <#rrggbb>', 'colour of the buttons of the hosted pages; or none')
      .option('--terms <url>', 'https URL of your terms, linked from the hosted pages; or none')
      .option('--support <url>', 'https URL of your support, linked from the hosted pages; or none')
      .action((merchantId: string, options: ConfigureOptions) =>
        run((place) => configure(place, merchantId, options)),
      );
    program
      .command('gateway')
      .description(
        'add an account at a gateway or replace its key; without a gateway, list the accounts',
      )
      .argument('<merchantId>')
      .addArgument(new Argument('[gateway]').choices(PROCESSOR_NAMES))
      .option('--key-file <file>', 'file with the secret key; - reads the standard input')
      .option(
        '--webhook-secret-file <file>',
        'file with the signing secret of the webhook endpoint',
      )
      .option('--account <acct>', 'the account to change without a key; default: the current one')
      .option('--current', 'save new payment methods at this account')
      .action((merchantId: string, gateway: string | undefined, options: GatewayOptions) =>
        run((place) => configureGateway(place, merchantId, processorNamed(gateway), options)),
      );

    program
      .command('reencrypt')
      .description('encrypt every stored secret with the first key of ENCRYPTION_KEY')
      .action(() => run(reencrypt));

    async function run(command: (place: Place) => Promise<Report>): Promise<void> {
      const { databaseUrl: url, peppers, ...place } = settings(surroundings.environment);
      const { input } = surroundings;
      const { json, by } = program.opts<{ json?: boolean; by: string }>();
      const record = recorder(by);
      const { lines, data } = await withDatabase({ url, command: 'merchant' }, (db) =>
        command({ db, input, record, ...place, pepper: () => pepperOf(db, peppers) }),
      );
      surroundings.print(json === true ? jsonText(data, 2) : lines.join('\n'));
    }
  },
);

async function create(place: Place, options: CreateOptions): Promise<Report> {
  const { name, mode, keyFile, webhookSecretFile } = options;
  const processor = processorNamed(options.gateway) ?? PROCESSORS[0];
  const problem = merchantNameProblem(name);
  if (problem !== null) throw new Error(problem);
  if (mode === 'live' && keyFile === undefined) {
    throw new Error(
      `A live merchant needs an account: --key-file with a key ${processor.shownKey('live')}.`,
    );
  }
  if (keyFile === undefined && webhookSecretFile !== undefined) {
    throw new Error('Give the key of the account: --key-file <file>.');
  }
  const key = await readKey(keyFile, mode, processor, place);
  const webhookSecret = await readWebhookSecret(webhookSecretFile, processor, place);
  const pepper = await place.pepper();
  const made = await place.db.transaction(async (tx) => {
    const merchant = await createMerchantWithCredential(tx, { name, mode, pepper });
    if (key !== null) {
      const { merchantId } = merchant;
      const { accountId } = key;
      const entry = { merchantId, mode, processor, accountId, key, webhookSecret, current: true };
      await storeAccount({ db: tx, sealing: place.sealing }, entry);
    }
    const { merchantId, keyId } = merchant;
    const facts = { mode, keyId, ...(key === null ? {} : { accountId: key.accountId }) };
    await place.record(tx, { command: 'merchant create', subject: merchantId, merchantId, facts });
    return merchant;
  });
  const accountLines = key === null ? [] : [`  account   ${key.accountId}`];
  return {
    lines: [
      `Merchant ${made.merchantId} "${name}", ${mode} mode.`,
      ...accountLines,
      ...secretLines(made),
    ],
    data: { ...made, name, mode, ...(key === null ? {} : { accountId: key.accountId }) },
  };
}

async function list({ db }: Place): Promise<Report> {
  const [merchants, credentials] = await Promise.all([listMerchants(db), listCredentials(db)]);
  const data = merchants.map((merchant) => ({
    merchantId: merchant.id,
    name: merchant.name,
    mode: merchant.mode,
    credentials: credentials
      .filter(({ merchantId }) => merchantId === merchant.id)
      .map(shownCredential),
  }));
  const lines = data.flatMap(({ merchantId, name, mode, credentials: own }) => [
    `${merchantId}  ${mode}  "${printable(name)}"`,
    ...own.map(credentialLine),
  ]);
  return { lines: lines.length > 0 ? lines : ['There are no merchants yet.'], data };
}

async function configure(
  { db, record }: Place,
  merchantId: string,
  options: ConfigureOptions,
): Promise<Report> {
  const { isChanged, now } = await db.transaction(async (tx) => {
    // A retry plan and a branding are replaced as a whole.
    const current = await findSettings(tx, merchantId, { lock: true });
    if (current === null) throw new Error(`There is no merchant ${merchantId}.`);
    const changes = settingsChanges(options, current);
    if (Object.keys(changes).length === 0) return { isChanged: false, now: current };
    const command = 'merchant configure';
    await record(tx, { command, subject: merchantId, merchantId, facts: { ...changes } });
    return { isChanged: true, now: (await changeSettings(tx, merchantId, changes)) ?? current };
  });
  const settings = shownSettings(now);
  const heading = `Merchant ${merchantId}${isChanged ? ' is changed' : ''}:`;
  return {
    lines: [heading, ...settingsLines(settings)],
    data: { merchantId, ...settings },
  };
}

async function reencrypt({ db, sealing, record }: Place): Promise<Report> {
  const { done, remaining } = await reencryptSecrets(db, sealing(), record);
  const text = `${done} secrets are encrypted anew with the first key of ENCRYPTION_KEY.`;
  if (remaining > 0) {
    throw new Error(`${text} ${remaining} remain: none of its keys can decrypt them.`);
  }
  return { lines: [text, 'None remains.'], data: { done, remaining } };
}

async function pepperOf(db: Db, peppers: readonly string[]): Promise<string> {
  const problem = await missingPeppers(db, peppers);
  if (problem !== null) throw new Error(`Nothing was changed. ${problem}`);
  return peppers[0] ?? '';
}

function settings(environment: Surroundings['environment']) {
  const { databaseUrl, peppers, encryptionKeys, doubleUrls } = commandPlace(environment);
  if (peppers === undefined) {
    throw new Error(
      'Set the CREDENTIAL_PEPPER of the API: DATABASE_URL is not the database of npm start.',
    );
  }
  return {
    databaseUrl,
    peppers,
    sealing: () => {
      if (encryptionKeys === undefined)
        throw new Error('Set the ENCRYPTION_KEY of API and worker.');
      return createSealing(encryptionKeys);
    },
    doubleUrls,
  };
}
