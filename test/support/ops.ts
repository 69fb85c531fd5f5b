import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export const ALERTS = 'ops/prometheus/alerts.yml';
const INSTALLATION = 'ops/prometheus/installation.yml';
const DASHBOARD = 'ops/grafana/perennial.json';

interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
}
type Rules = { groups: { rules: Rule[] }[] };
interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const rulesIn = (file: string): Rule[] =>
  (parse(readFileSync(file, 'utf8')) as Rules).groups.flatMap((group) => group.rules);

/** Alerts, and the sums of hours of which some of them are made. */
const all = rulesIn(ALERTS);
export const rulesCount = all.length;
export const rules = all.filter(({ alert }) => alert !== undefined);
export const expected = rulesIn(INSTALLATION);

/** Metrics that no process of ours serves: of `installation.yml`, and of the backup's text file. */
const FOREIGN = ['perennial_instances_expected', 'perennial_backup_completed_timestamp_seconds'];

export const dashboardExpressions = (
  JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard
).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** The names of our processes' metrics in expressions, without the suffixes of a histogram's series. */
export function metricsIn(expressions: readonly string[]): Set<string> {
  const names = expressions.flatMap((expr) => [
    ...expr.matchAll(/\b(?:perennial|temporal|nodejs|process)_\w+/g),
  ]);
  const metrics = names.map(([name]) => name.replace(/_(bucket|sum|count)$/, ''));
  return new Set(metrics.filter((name) => !FOREIGN.includes(name)));
}
