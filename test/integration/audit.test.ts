import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { auditCommand } from '../../cli/audit/command.ts';
import { merchantCommand } from '../../cli/merchant/command.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { importsIn, LINE } from '../support/imports.ts';
import { runCommand, runProgram } from '../support/run-command.ts';
import { unpaidIn } from '../support/unpaid.ts';

/** Runs the commands of an operator on the database of the environment. */
const test = onDevServer.extend('operator', { scope: 'file' }, ({ env }) => {
  const variables = {
    ...env.variables,
    CREDENTIAL_PEPPER: 'pepper-of-the-audit-tests-000000000001',
  };
  const merchant = (...args: string[]) => runCommand(merchantCommand, variables, args);
  const audit = async (...args: string[]) => {
    const { stdout, stderr } = await runCommand(auditCommand, variables, args);
    return stdout + stderr;
  };
  const create = async (...args: string[]) => {
    const { stdout } = await merchant('create', '--name', 'Shop', '--json', ...args);
    return JSON.parse(stdout) as { merchantId: string; keyId: string; secret: string };
  };
  return { variables, merchant, audit, create };
});

interface Shown {
  actedBy: string | null;
  command: string;
  subject: string;
  facts: object;
}

const actionsIn = (json: string) =>
  (JSON.parse(json) as Shown[]).map(
    ({ actedBy, command, subject, facts }) => [actedBy, command, subject, facts] as const,
  );

test('the audit log names who did what by the merchant command, newest first, without a secret [D-20]', async ({
  operator: { merchant, audit, create },
}) => {
  const { merchantId, keyId, secret } = await create('--by', 'Ada');
  const made = async (...args: string[]) =>
    JSON.parse((await merchant(...args, '--by', 'Grace', '--json')).stdout) as {
      keyId: string;
      secret: string;
    };
  const added = await made('add', keyId, '--read-only');
  const rotated = await made('rotate', keyId);
  await merchant('revoke', added.keyId, '--by', 'Ada');
  await merchant('configure', merchantId, '--jitter', '30m', '--by', 'Ada');
  await merchant('configure', merchantId, '--by', 'Ada');
  await merchant('list', '--by', 'Ada');
  const shown = await audit('--subject', merchantId, '--json');
  expect(actionsIn(shown)).toEqual([
    ['Ada', 'merchant configure', merchantId, { jitterMs: 1_800_000 }],
    ['Ada', 'merchant revoke', added.keyId, {}],
    ['Grace', 'merchant rotate', keyId, { replacedBy: rotated.keyId }],
    ['Grace', 'merchant add', added.keyId, { isReadOnly: true }],
    ['Ada', 'merchant create', merchantId, { mode: 'test', keyId }],
  ]);
  const text = await audit('--subject', merchantId);
  expect(text.split('\n')[2]).toMatch(
    new RegExp(
      `^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC {2}Grace {2}merchant rotate {5}${keyId} {2}replacedBy=${rotated.keyId}$`,
    ),
  );
  for (const hidden of [secret, added.secret, rotated.secret]) {
    expect(shown + text).not.toContain(hidden);
  }
  expect(actionsIn(await audit('--subject', added.keyId, '--json'))).toHaveLength(2);
});

test('the audit log takes the user of the machine without --by, and lists actions from an instant on [D-20]', async ({
  operator: { variables, merchant, audit, create },
}) => {
  const { merchantId } = await create();
  const [row] = JSON.parse(await audit('--subject', merchantId, '--json')) as Shown[];
  expect(row?.actedBy).toMatch(/^\S+/);
  expect(await audit('--since', '2190-01-01')).toBe('There are no actions.\n');
  expect(await audit('--since', '2020-01-01', '--subject', merchantId)).toContain(
    'merchant create',
  );
  expect(await merchant('create', '--name', 'Shop', '--by', ' ')).toEqual({
    code: 1,
    stdout: '',
    stderr: '--by must not be empty.\n',
  });
  const program = await runProgram('cli/merchant.ts', variables, ['list', '--json']);
  expect(program.code).toBe(0);
});

test('a command whose action cannot be recorded changes nothing [D-20]', async ({
  env,
  operator: { merchant, audit, create },
}) => {
  const { merchantId, keyId } = await create();
  const before = await merchant('list');
  const settings = await merchant('configure', merchantId);
  await env.db.execute(sql`alter table operator_action rename to operator_action_away`);
  const commands = [
    ['create', '--name', 'Shop'],
    ['add', keyId],
    ['rotate', keyId],
    ['revoke', keyId],
    ['configure', merchantId, '--jitter', '1h'],
  ];
  for (const args of commands) expect((await merchant(...args)).code, args[0]).toBe(1);
  await env.db.execute(sql`alter table operator_action_away rename to operator_action`);
  expect(await merchant('list')).toEqual(before);
  expect(await merchant('configure', merchantId)).toEqual(settings);
  expect(actionsIn(await audit('--subject', merchantId, '--json'))).toHaveLength(1);
});

test('the audit log lists a change that an operator ordered by a signal in the Web UI, and none that the merchant ordered [D-34]', async ({
  env,
  operator: { audit },
}) => {
  const { ref } = await unpaidIn(env);
  const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await env.execute(ref, { kind: 'edit', commandId: 'merchants-edit', newAmountMinor: 2_100 });
  await handle.signal('edit', { newAmountMinor: 2_500 });
  await expect.poll(async () => (await env.state(ref)).terms.amountMinor).toBe(2_500);
  const facts = { amountMinor: 2_500, commandId: expect.any(String) as string };
  const shown = await audit('--subject', ref.subscriptionId, '--json');
  expect(actionsIn(shown)).toEqual([[null, 'subscription edited', ref.subscriptionId, facts]]);
  expect(await audit('--subject', ref.subscriptionId)).toContain(
    'UTC  an operator  subscription edited',
  );
});

test('an import has a row before its first line and one after its last; a dry run has none [D-05]', async ({
  env,
  operator: { audit },
}) => {
  const imports = importsIn(env);
  const gatewayMethodId = await imports.sandboxMethod();
  const nextPaymentDate = Date.now() + 86_400_000;
  const file = imports.write([{ ...LINE, importId: 'audited', gatewayMethodId, nextPaymentDate }]);
  const run = async (...args: string[]) => {
    const { code } = await imports.command(env.merchantId, file, '--by', 'Ada', ...args).done;
    expect(code).toBe(0);
  };
  await run();
  await run('--commit');
  const shown = actionsIn(await audit('--subject', env.merchantId, '--json'));
  expect(shown.filter(([, command]) => command.includes('import'))).toEqual([
    ['Ada', 'import ended', env.merchantId, expect.objectContaining({ imported: 1, problem: 0 })],
    ['Ada', 'import', env.merchantId, { file: basename(file), bytes: statSync(file).size }],
  ]);
  imports.close();
});
