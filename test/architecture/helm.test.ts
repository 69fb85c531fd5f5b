import { basename, dirname } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadApiConfig, loadMigrateConfig, loadWorkerConfig } from '../../runtime/config.ts';
import { STOP_WITHIN_MS } from '../../runtime/shutdown.ts';
import { runCommand } from '../../tools/embedded/run-command.ts';
import { readServices } from '../../tools/rehearsal/composition.ts';
import { helm } from '../support/operator-programs.ts';

const CHART = 'ops/helm';
const services = readServices();

interface Variable {
  name: string;
  value?: string;
  valueFrom?: { secretKeyRef: { name: string; key: string } };
}
interface Pod {
  metadata?: { labels: Record<string, string> };
  spec: {
    terminationGracePeriodSeconds?: number;
    shareProcessNamespace?: boolean;
    containers: [
      {
        name: string;
        image: string;
        command: string[];
        env: Variable[];
        ports?: { name: string; containerPort: number }[];
        resources: { limits: { memory: string } };
        volumeMounts?: { name: string; mountPath: string }[];
        lifecycle?: { preStop: { exec: { command: string[] } } };
        readinessProbe?: { httpGet: { path: string; port: string } };
        livenessProbe?: { httpGet: { path: string; port: string } };
      },
    ];
  };
}
interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  data?: Record<string, string>;
  spec: { selector: object; template: Pod };
}

let tool: string | undefined;
beforeAll(async () => void (tool = await helm()), 30 * 60_000);

async function render(...settings: string[]): Promise<KubernetesObject[]> {
  const required = ['PUBLIC_URL=https://pay.example', 'TEMPORAL_ADDRESS=temporal:7233'];
  const args = [...required.map((each) => `settings.${each}`), ...settings];
  const options = args.flatMap((each) => ['--set', each]);
  const text = await runCommand(tool ?? '', ['template', 'shop', CHART, ...options], {
    timeoutMs: 60_000,
  });
  const documents = parseAllDocuments(text);
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  return documents.map((each) => each.toJS() as KubernetesObject);
}

const named = (objects: readonly KubernetesObject[], kind: string, name: string) =>
  objects.find((each) => each.kind === kind && each.metadata.name === `shop-${name}`)!;

/** The variables of a container, with a sample for each that comes from the Secret. */
function environmentOf({ spec }: KubernetesObject): Record<string, string> {
  const [{ env }] = spec.template.spec.containers;
  const sample = Buffer.alloc(32, 7).toString('base64');
  const given = Object.fromEntries(env.map(({ name, value }) => [name, value ?? sample]));
  const CURRENCY_LIMITS_FILE = 'docker/currency-limits.json';
  return { ...given, DATABASE_URL: 'postgres://db/p', CURRENCY_LIMITS_FILE };
}

const PROCESSES = [
  ['Deployment', 'api'],
  ['Deployment', 'worker'],
  ['Job', 'migrate'],
] as const;

describe('the chart ops/helm', () => {
  it('has a Deployment of API and worker, a migration before them, a Service and the limits of currencies', async ({
    skip,
  }) => {
    if (tool === undefined) skip('no helm');
    const objects = await render();
    expect(
      objects
        .map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata.name].join(' '))
        .toSorted(),
    ).toEqual([
      'apps/v1 Deployment shop-api',
      'apps/v1 Deployment shop-worker',
      'batch/v1 Job shop-migrate',
      'v1 ConfigMap shop-currency-limits',
      'v1 Service shop-api',
      'v1 Service shop-metrics',
    ]);
    expect(named(objects, 'Job', 'migrate').metadata.annotations).toMatchObject({
      'helm.sh/hook': 'pre-install,pre-upgrade',
    });
    const { spec } = named(objects, 'Deployment', 'api');
    const ofServices = ['api', 'metrics'].map(
      (name) => named(objects, 'Service', name).spec.selector,
    );
    for (const labels of [(spec.selector as { matchLabels: object }).matchLabels, ...ofServices]) {
      expect(spec.template.metadata!.labels).toMatchObject(labels);
    }
  });

  it.for(PROCESSES)(
    'gives the %s %s the command, memory and variables of the composition',
    async ([kind, name], { skip }) => {
      if (tool === undefined) skip('no helm');
      const objects = await render();
      const [container] = named(objects, kind, name).spec.template.spec.containers;
      const service = services[name]!;
      expect(container.command).toEqual(service.command);
      const memory = container.resources.limits.memory;
      expect(memory.toLowerCase().replace('i', '')).toBe(service.mem_limit);
      const names = container.env.map((each) => each.name);
      expect(names.toSorted()).toEqual(Object.keys(service.environment).toSorted());
      for (const { name: variable, value, valueFrom } of container.env) {
        const composed = service.environment[variable]!;
        const isSecret = composed.includes(':?');
        expect([variable, valueFrom?.secretKeyRef]).toEqual([
          variable,
          isSecret ? { name: 'perennial', key: variable } : undefined,
        ]);
        const own = ['GATEWAY_PUBLIC_URL', 'GATEWAY_URL', 'PUBLIC_URL'];
        if (isSecret || own.includes(variable)) continue;
        expect([variable, value]).toEqual([variable, composed.replace(/^\$\{\w+:-(.*)\}$/, '$1')]);
      }
    },
  );

  it('configures every process completely, and an entry with its own queues', async ({ skip }) => {
    if (tool === undefined) skip('no helm');
    const own = ['WORKER_QUEUES=webhooks', 'MAINTENANCE=false', 'TASK_QUEUE_PREFIX='];
    const objects = await render(
      'settings.TASK_QUEUE_PREFIX=all-',
      ...own.map((each) => `deployments.worker.settings.${each}`),
    );
    expect(loadApiConfig(environmentOf(named(objects, 'Deployment', 'api')))).toMatchObject({
      publicUrl: 'https://pay.example',
      temporalAddress: 'temporal:7233',
      metricsPort: 9464,
    });
    const worker = environmentOf(named(objects, 'Deployment', 'worker'));
    expect(loadWorkerConfig(worker)).toMatchObject({
      queues: ['webhooks'],
      isMaintenanceOn: false,
      taskQueuePrefix: '',
    });
    expect(loadMigrateConfig(environmentOf(named(objects, 'Job', 'migrate'))).databaseUrl).toBe(
      'postgres://db/p',
    );
  });

  it('gives API and worker the key of Temporal Cloud from the Secret, and not the migration', async ({
    skip,
  }) => {
    if (tool === undefined) skip('no helm');
    const objects = await render('variables={TEMPORAL_API_KEY}');
    const keys = PROCESSES.map(([kind, name]) => {
      const [{ env }] = named(objects, kind, name).spec.template.spec.containers;
      return env.find((each) => each.name === 'TEMPORAL_API_KEY')?.valueFrom?.secretKeyRef;
    });
    const key = { name: 'perennial', key: 'TEMPORAL_API_KEY' };
    expect(keys).toEqual([key, key, undefined]);
  });

  it('mounts the limits of currencies where CURRENCY_LIMITS_FILE names them', async ({ skip }) => {
    if (tool === undefined) skip('no helm');
    const objects = await render('currencyLimits.EUR.max=500000');
    const { data } = named(objects, 'ConfigMap', 'currency-limits');
    for (const name of ['api', 'worker']) {
      const [container] = named(objects, 'Deployment', name).spec.template.spec.containers;
      const file = container.env.find((each) => each.name === 'CURRENCY_LIMITS_FILE')!.value!;
      expect(container.volumeMounts!.map(({ mountPath }) => mountPath)).toEqual([dirname(file)]);
      expect(JSON.parse(data![basename(file)]!)).toEqual({ EUR: { max: 500_000 } });
    }
  });

  it('replaces the workers and the schema before the API', async ({ skip }) => {
    if (tool === undefined) skip('no helm');
    const objects = await render('image=new', 'deployments.api.image=old');
    const images = PROCESSES.map(
      ([kind, name]) => named(objects, kind, name).spec.template.spec.containers[0].image,
    );
    expect(images).toEqual(['old', 'new', 'new']);
  });

  it('is refused without PUBLIC_URL', async ({ skip }) => {
    if (tool === undefined) skip('no helm');
    await expect(render('settings.PUBLIC_URL=')).rejects.toThrow('settings.PUBLIC_URL must be set');
  });

  it.for(['api', 'worker'])(
    'probes the metrics port of %s, and waits 80 s for its end',
    async (name, { skip }) => {
      if (tool === undefined) skip('no helm');
      const { spec } = named(await render(), 'Deployment', name).spec.template;
      const [container] = spec.containers;
      expect(container.readinessProbe!.httpGet).toEqual({ path: '/ready', port: 'metrics' });
      expect(container.livenessProbe!.httpGet).toEqual({ path: '/live', port: 'metrics' });
      expect(container.ports).toContainEqual({ name: 'metrics', containerPort: 9464 });
      const pause = Number(container.lifecycle?.preStop.exec.command[1] ?? 0);
      expect(spec.terminationGracePeriodSeconds).toBe(80);
      // Else Node is process 1, which ignores a SIGTERM during its start.
      expect(spec.shareProcessNamespace).toBe(true);
      expect(80 - pause).toBeGreaterThan(STOP_WITHIN_MS / 1_000);
    },
  );
});
