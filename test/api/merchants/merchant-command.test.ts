import { expect } from 'vitest';
import { loadSettings } from '../../../db/repositories/merchants/settings.ts';
import { merchantCommand } from '../../../cli/merchant/command.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { runCommand, runProgram } from '../../support/run-command.ts';

const variables = (api: ApiEnvironment) => ({
  DATABASE_URL: api.databaseUrl,
  CREDENTIAL_PEPPER: api.pepper,
});

/** Runs `npm run merchant -- …` on the environment's database. */
const merchant = (api: ApiEnvironment, ...args: string[]) =>
  runCommand(merchantCommand, variables(api), args);

interface Issued {
  merchantId: string;
  keyId: string;
  secret: string;
}

const list = (api: ApiEnvironment, as: { keyId: string; secret: string }) =>
  api.call('GET', '/webhook', { as });

test('the merchant command creates and lists a merchant, and rotates and revokes the merchant’s credential [D-20]', async ({
  api,
}) => {
  const made = await merchant(api, 'create', '--name', 'Shop "A"', '--json');
  const first = JSON.parse(made.stdout) as Issued;
  expect(first).toMatchObject({
    merchantId: expect.stringMatching(/^mer_/),
    name: 'Shop "A"',
    mode: 'test',
    keyId: expect.stringMatching(/^mk_test_/),
    secret: expect.stringMatching(/^sk_test_/),
  });
  expect((await list(api, first)).status).toBe(200);

  const rotated = await merchant(api, 'rotate', first.keyId, '--json');
  const second = JSON.parse(rotated.stdout) as Issued;
  expect((await list(api, second)).status).toBe(200);
  expect((await list(api, first)).status).toBe(200);

  const revoked = await merchant(api, 'revoke', second.keyId);
  expect(revoked.stdout).toBe(`${second.keyId} is revoked.\n`);

  const listed = await merchant(api, 'list');
  expect(listed.stdout).toContain(`${first.merchantId}  test  "Shop "A""`);
  expect(listed.stdout).toMatch(new RegExp(`${first.keyId}  works until \\d{4}-`));
  expect(listed.stdout).toMatch(new RegExp(`${second.keyId}  revoked \\d{4}-`));
  expect(listed.stdout).not.toContain('sk_test_');
});

test('the merchant command prints one line and exits with 1 for an unknown credential [D-20]', async ({
  api,
}) => {
  const revoke = ['revoke', 'mk_test_nobody'];
  const refused = {
    code: 1,
    stdout: '',
    stderr: 'There is no working credential mk_test_nobody.\n',
  };
  expect(await runProgram('cli/merchant.ts', variables(api), revoke)).toEqual(refused);
  expect(await merchant(api, ...revoke)).toEqual(refused);
  expect(await merchant(api, 'rotate', 'mk_test_nobody')).toMatchObject({ code: 1 });
});

test('the merchant command adds a credential that only reads and expires, and lists its latest use [D-20]', async ({
  api,
}) => {
  const { keyId } = api.other;
  const expires = new Date(Date.now() + 3_600_000).toISOString();
  const add = (...options: string[]) => merchant(api, 'add', keyId, ...options, '--json');
  const added = JSON.parse((await add('--read-only', '--expires', expires)).stdout) as Issued;
  const lineOf = async () =>
    (await merchant(api, 'list')).stdout.split('\n').find((line) => line.includes(added.keyId));
  expect(await lineOf()).toMatch(/ {2}works until \d{4}-\S+ {2}read only {2}never used$/);
  expect((await list(api, added)).status).toBe(200);
  expect((await api.call('POST', '/customer/create', { as: added, body: {} })).status).toBe(403);
  await expect.poll(lineOf).toMatch(/ {2}last used \d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  api.clock.aheadMs += 3_600_000;
  expect((await list(api, added)).status).toBe(401);
  expect(await add('--expires', '2020-01-01')).toMatchObject({
    code: 1,
    stderr: '--expires must be an instant in the future.\n',
  });
  expect((await add('--expires', '2099-02-29')).stderr).toContain(
    'Give an instant like 2027-01-31',
  );
});

test('the merchant command refuses to make credentials with a pepper that the working credentials do not have [D-20]', async ({
  api,
}) => {
  const wrong = { ...variables(api), CREDENTIAL_PEPPER: 'pepper-of-nobody-0000000000000000000001' };
  const { keyId } = api.other;
  const before = await merchant(api, 'list');
  for (const args of [
    ['create', '--name', 'Shop'],
    ['add', keyId],
    ['rotate', keyId],
  ]) {
    expect(await runCommand(merchantCommand, wrong, args)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^Nothing was changed. CREDENTIAL_PEPPER: \d+ working credentials were made with another value. /,
      ),
    });
  }
  expect(await merchant(api, 'list')).toEqual(before);
  const both = { ...wrong, CREDENTIAL_PEPPER: `${wrong.CREDENTIAL_PEPPER},${api.pepper}` };
  const added = await runCommand(merchantCommand, both, ['add', keyId, '--json']);
  // The other tests' commands have only one of the peppers.
  await merchant(api, 'revoke', (JSON.parse(added.stdout) as Issued).keyId);
});

interface Settings {
  retryPlan: string[];
  afterExhausted: string;
  unpaidFrom: string;
  cardLimits: { perDay: number; per30Days: number };
  statementSuffix: string | null;
  jitter: string;
  notices: { eventType: string; cycleDays: number; daysBefore: number[] }[];
  chargeWithoutNotice: boolean;
  paymentMethods: string[];
  keepEvents: number | null;
  keepAttempts: number | null;
  declarations: string;
  withdrawalDays: number;
  portal: string[];
  logo: string | null;
  colour: string | null;
  terms: string | null;
  support: string | null;
}

const DEFAULTS: Settings = {
  retryPlan: ['4h', '8h', '12h', '1d'],
  afterExhausted: 'stay_unpaid',
  unpaidFrom: 'first_decline',
  cardLimits: { perDay: 10, per30Days: 15 },
  statementSuffix: null,
  jitter: 'auto',
  notices: [
    { eventType: 'subscription.renewal_upcoming', cycleDays: 180, daysBefore: [40, 10] },
    { eventType: 'subscription.trial_ending', cycleDays: 0, daysBefore: [8] },
    { eventType: 'subscription.amount_changing', cycleDays: 180, daysBefore: [20] },
    { eventType: 'payment_method.expiring', cycleDays: 180, daysBefore: [30] },
  ],
  chargeWithoutNotice: true,
  paymentMethods: ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'],
  keepEvents: null,
  keepAttempts: null,
  declarations: 'tell',
  withdrawalDays: 14,
  portal: ['card'],
  logo: null,
  colour: null,
  terms: null,
  support: null,
};

async function settingsOf(api: ApiEnvironment, merchantId: string): Promise<Settings> {
  const { stdout } = await merchant(api, 'configure', merchantId, '--json');
  return JSON.parse(stdout) as Settings;
}

test('two merchant commands at once change the parts of a retry plan that each names [D-30]', async ({
  api,
}) => {
  const created = await merchant(api, 'create', '--name', 'Two', '--json');
  const { merchantId } = JSON.parse(created.stdout) as { merchantId: string };
  for (const delay of ['2h', '3h', '4h']) {
    await merchant(api, 'configure', merchantId, '--after-exhausted', 'stay_unpaid');
    await Promise.all([
      merchant(api, 'configure', merchantId, '--retry-plan', delay),
      merchant(api, 'configure', merchantId, '--after-exhausted', 'end'),
    ]);
    const settings = await settingsOf(api, merchantId);
    expect(settings).toMatchObject({ retryPlan: [delay], afterExhausted: 'end' });
  }
});

test('the merchant command prints settings and changes only the given ones [D-30, D-43, D-63]', async ({
  api,
}) => {
  const { merchantId } = api.merchant;
  expect(await settingsOf(api, merchantId)).toEqual({ merchantId, ...DEFAULTS });

  const changed = await merchant(api, 'configure', merchantId, '--retry-plan', '2h, 90m,3d');
  expect(changed).toMatchObject({ stderr: '' });
  expect(changed.stdout).toBe(
    `Merchant ${merchantId} is changed:
  retry plan       2h,90m,3d
  after exhausted  stay_unpaid
  unpaid from      first_decline
  card limits      10,15
  jitter           auto
  notices          subscription.renewal_upcoming:180d=40d,10d;subscription.trial_ending=8d;subscription.amount_changing:180d=20d;payment_method.expiring:180d=30d
  without notice   charged
  on statements    nothing
  payment methods  CARD,GOOGLE_PAY,APPLE_PAY
  declarations     tell
  withdrawal       14 days
  own page         card
  keep events      as the workers are configured
  keep attempts    as the workers are configured
  logo             none
  colour           none
  terms            none
  support          none
`,
  );
  const rest = [
    '--after-exhausted',
    'end',
    '--unpaid-from',
    'retries_exhausted',
    '--card-limits',
    '3,12',
    '--declarations',
    'execute',
    '--withdrawal-days',
    '30',
    '--portal',
    'pause,card',
    '--statement-suffix',
    'TEA SHOP',
    '--jitter',
    '30m',
    '--notices',
    'subscription.renewal_upcoming=7d',
    '--charge-without-notice',
    'false',
    '--payment-methods',
  ];
  await merchant(api, 'configure', merchantId, ...rest, 'GOOGLE_PAY,CARD');
  expect(await settingsOf(api, merchantId)).toEqual({
    ...DEFAULTS,
    merchantId,
    retryPlan: ['2h', '90m', '3d'],
    afterExhausted: 'end',
    unpaidFrom: 'retries_exhausted',
    cardLimits: { perDay: 3, per30Days: 12 },
    statementSuffix: 'TEA SHOP',
    declarations: 'execute',
    withdrawalDays: 30,
    portal: ['card', 'pause'],
    jitter: '30m',
    notices: [{ eventType: 'subscription.renewal_upcoming', cycleDays: 0, daysBefore: [7] }],
    chargeWithoutNotice: false,
    paymentMethods: ['CARD', 'GOOGLE_PAY'],
  });
  expect(await loadSettings(api.db, merchantId)).toEqual({
    retryPlan: {
      delaysMs: [7_200_000, 5_400_000, 259_200_000],
      afterExhausted: 'end',
      unpaidFrom: 'retries_exhausted',
    },
    cardLimits: { perDay: 3, per30Days: 12 },
    statementSuffix: 'TEA SHOP',
    declarations: 'execute',
    withdrawalDays: 30,
    portal: ['card', 'pause'],
    jitterMs: 1_800_000,
    notices: [{ notice: 'subscription.renewal_upcoming', cycleDays: 0, daysBefore: [7] }],
    chargeWithoutNotice: false,
    paymentMethods: ['CARD', 'GOOGLE_PAY'],
  });

  await merchant(api, 'configure', merchantId, '--retry-plan', 'none', '--jitter', '0');
  expect((await merchant(api, 'configure', merchantId)).stdout).toBe(
    `Merchant ${merchantId}:
  retry plan       none
  after exhausted  end
  unpaid from      retries_exhausted
  card limits      3,12
  jitter           0
  notices          subscription.renewal_upcoming=7d
  without notice   not charged
  on statements    TEA SHOP
  payment methods  CARD,GOOGLE_PAY
  declarations     execute
  withdrawal       30 days
  own page         card,pause
  keep events      as the workers are configured
  keep attempts    as the workers are configured
  logo             none
  colour           none
  terms            none
  support          none
`,
  );
});

test('the merchant command sets logo, colour and links of the hosted pages, and removes them with none [D-§7]', async ({
  api,
}) => {
  const { merchantId } = api.other;
  const logo = 'https://cdn.shop.example/logo.svg';
  const terms = 'https://shop.example/terms';
  const all = ['--logo', logo, '--colour', '#1F4FD8', '--terms', terms];
  const changed = await merchant(api, 'configure', merchantId, ...all);
  expect(changed.stdout).toContain(`  logo             ${logo}
  colour           #1F4FD8
  terms            ${terms}
  support          none
`);
  await merchant(api, 'configure', merchantId, '--logo', 'none', '--support', terms);
  const branding = { colour: '#1F4FD8', termsUrl: terms, supportUrl: terms };
  expect(await loadSettings(api.db, merchantId)).toMatchObject({ branding });
  expect(await settingsOf(api, merchantId)).toEqual({
    ...DEFAULTS,
    merchantId,
    colour: '#1F4FD8',
    terms,
    support: terms,
  });
  const none = ['--colour', 'none', '--terms', 'none', '--support', 'none'];
  await merchant(api, 'configure', merchantId, ...none);
  expect(await settingsOf(api, merchantId)).toEqual({ merchantId, ...DEFAULTS });
});

test('the merchant command names each invalid setting and changes nothing [D-30, D-43]', async ({
  api,
}) => {
  const { merchantId } = api.other;
  const refused = await merchant(
    api,
    'configure',
    merchantId,
    '--retry-plan=4h,soon',
    '--jitter=13h',
    '--payment-methods=GOOGLE_PAY',
  );
  expect(refused).toMatchObject({
    code: 1,
    stdout: '',
    stderr: `Nothing was changed.
  --retry-plan: must be times like 4h or 2d (units d, h, m, s)
  --jitter: "13h" is not auto, 0 or a time like 30m, at most 12h
  --payment-methods: CARD must be included: the other methods fall back to it
`,
  });
  const cases: [string[], string][] = [
    [['--retry-plan', '59s'], '--retry-plan: must be times from 1 minute to 30 days'],
    [['--retry-plan', '31d'], '--retry-plan: must be times from 1 minute to 30 days'],
    [
      ['--retry-plan', Array.from({ length: 15 }, () => '1h').join(',')],
      '--retry-plan: must be at most 14 times',
    ],
    [
      ['--card-limits', '11,15'],
      '--card-limits: "11,15" is not two numbers like 10,15, at most 10,20',
    ],
    [['--card-limits', '5'], '--card-limits: "5" is not two numbers like 10,15, at most 10,20'],
    [
      ['--statement-suffix', '2027'],
      '--statement-suffix: "2027" is not 2 to 14 characters with a letter',
    ],
    [['--withdrawal-days', '0'], '--withdrawal-days: "0" is not a number of days from 1 to 379'],
    [
      ['--portal', 'card,leave'],
      '--portal: "card,leave" is not a list of card, cancel, pause, or none',
    ],
    [
      ['--notices', 'subscription.ended=3d'],
      '--notices: "subscription.ended" is not one of subscription.renewal_upcoming,',
    ],
    [
      ['--notices', 'off', '--charge-without-notice', 'false'],
      '--charge-without-notice: false needs --notices',
    ],
    [['--jitter', '-5m'], '--jitter: "-5m" is not auto, 0 or a time like 30m, at most 12h'],
    [
      ['--payment-methods', 'CARD,CASH'],
      '--payment-methods: "CARD,CASH" is not a list of CARD, GOOGLE_PAY, APPLE_PAY',
    ],
    [
      ['--logo', 'http://shop.example/a.png'],
      '--logo: "http://shop.example/a.png" is not an https',
    ],
    [['--terms', 'shop.example'], '--terms: "shop.example" is not an https URL'],
    [['--support', 'mailto:a@shop.example'], '--support: "mailto:a@shop.example" is not an https'],
    [['--colour', 'blue'], '--colour: "blue" is not a colour like #1f4fd8'],
    [
      ['--colour', '#797979'],
      '--colour: "#797979" has a contrast of only 4.35 with the button’s text, which is #ffffff or ' +
        '#0d1526; it needs 4.5: take a darker or a lighter colour',
    ],
    [['--after-exhausted', 'later'], 'Allowed choices are stay_unpaid, end.'],
    [['--unpaid-from', 'later'], 'Allowed choices are first_decline, retries_exhausted.'],
  ];
  for (const [options, message] of cases) {
    const answer = await merchant(api, 'configure', merchantId, '--jitter', '1h', ...options);
    expect(answer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(message) });
  }
  expect(await settingsOf(api, merchantId)).toEqual({ merchantId, ...DEFAULTS });
  expect(await merchant(api, 'configure', 'mer_nobody', '--jitter', '1h')).toMatchObject({
    code: 1,
    stderr: 'There is no merchant mer_nobody.\n',
  });
});

test('the merchant command prints JSON with --json for create, add, rotate, revoke, configure and list [D-20]', async ({
  api,
}) => {
  const run = async (...args: string[]): Promise<Record<string, unknown>> =>
    JSON.parse((await merchant(api, ...args, '--json')).stdout) as Record<string, unknown>;
  const made = await run('create', '--name', 'Data');
  const { merchantId, keyId } = made as unknown as Issued;
  const added = await run('add', keyId);
  expect(Object.keys(added).toSorted()).toEqual(['keyId', 'secret']);
  const rotated = await run('rotate', keyId);
  expect(rotated).toMatchObject({ replaces: keyId, keyId: expect.stringMatching(/^mk_test_/) });
  expect(await run('revoke', String(rotated['keyId']))).toEqual({ revoked: rotated['keyId'] });
  expect(await run('configure', merchantId)).toEqual({ merchantId, ...DEFAULTS });
  const unused = { access: 'full', lastUsedAt: null };
  const merchants = (await run('list')) as unknown as Record<string, unknown>[];
  expect(merchants.find((one) => one['merchantId'] === merchantId)).toEqual({
    merchantId,
    name: 'Data',
    mode: 'test',
    credentials: [
      { ...unused, keyId, state: expect.stringMatching(/^works until /) },
      { ...unused, keyId: added['keyId'], state: 'works' },
      { ...unused, keyId: rotated['keyId'], state: expect.stringMatching(/^revoked /) },
    ],
  });
});
