import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

export const ALERTS = 'ops/prometheus/alerts.yml';
const DASHBOARD = 'ops/grafana/perennial.json';

interface Rules {
  groups: { rules: { alert: string; expr: string; labels: { severity: string } }[] }[];
}
interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

export const rules = (parse(readFileSync(ALERTS, 'utf8')) as Rules).groups.flatMap(
  (group) => group.rules,
);

export const dashboardExpressions = (
  JSON.parse(readFileSync(DASHBOARD, 'utf8')) as Dashboard
).panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** The names of the metrics in expressions, without the suffixes of a histogram's series. */
export function metricsIn(expressions: readonly string[]): Set<string> {
  const names = expressions.flatMap((expr) => [
    ...expr.matchAll(/\b(?:perennial|temporal|nodejs|process)_\w+/g),
  ]);
  return new Set(names.map(([name]) => name.replace(/_(bucket|sum|count)$/, '')));
}
