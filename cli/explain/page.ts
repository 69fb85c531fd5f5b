import { formatAmount } from '../../domain/money.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import { simulate } from '../../domain/subscription/simulate.ts';
import { lifeSvg } from './life-picture.ts';
import type { Life } from './life-picture.ts';
import { explanationLines } from './explanation.ts';
import type { Explained } from './explanation.ts';

/** The picture shows at most this many charges to come. */
const PLANNED_MAX = 3;
const DAY_MS = 86_400_000;

const STYLE = `
  :root { color-scheme: light dark; }
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 66rem; padding: 0 1rem; }
  h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
  figure { background: white; border-radius: 6px; color: #1d2329; margin: 1rem 0; overflow-x: auto; }
  svg { display: block; height: auto; min-width: 30rem; width: 100%; }
  pre { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }`;

/** One page without other files: the drawn life, with the next charges dashed, and the explanation. */
export function explanationPage(explained: Explained): string {
  const title = explained.state.subscriptionId;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${STYLE}
</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<figure tabindex="0">
${lifeSvg(explained.productName ?? title, lifeOf(explained))}</figure>
<pre>${explanationLines(explained).map(escaped).join('\n')}</pre>
</main>
</body>
</html>
`;
}

function lifeOf({ state, now, entries, attempts }: Explained): Life {
  const { currency } = state.terms;
  const made = attempts.flatMap(({ attempt }) => {
    if (attempt.state !== 'SUCCEEDED' && attempt.state !== 'DECLINED') return [];
    const isPaid = attempt.state === 'SUCCEEDED';
    const text = isPaid ? amountText(attempt) : 'declined';
    return [
      { at: attempt.createdAt, text, outcome: isPaid ? ('paid' as const) : ('declined' as const) },
    ];
  });
  // Every simulated charge is paid, so no retry plan is used.
  const { steps } = simulate(state, now, DEFAULT_RETRY_PLAN, { outcomes: [], commands: [] });
  const planned = steps
    .flatMap(({ at, charge }) =>
      charge
        ? [{ at, text: amountText({ ...charge, currency }), outcome: 'planned' as const }]
        : [],
    )
    .slice(0, PLANNED_MAX);
  return {
    changes: entries
      .map(({ at, statusAfter: status }) => ({ at, status }))
      .filter(({ status }, index, all) => status !== all[index - 1]?.status),
    charges: [...made, ...planned],
    commands: entries.flatMap(({ at, kind }) => {
      const text = COMMANDS[kind];
      return text === undefined ? [] : [{ at, text }];
    }),
    endAt: Math.max(now, planned.at(-1)?.at ?? 0, (entries.at(-1)?.at ?? 0) + 10 * DAY_MS),
  };
}

/** The changes by the merchant, an operator or the payer, in words that the picture has room for. */
const COMMANDS: Partial<Record<Entry['kind'], string>> = {
  edited: 'edit',
  cancellation_planned: 'cancel at period end',
  cancellation_withdrawn: 'resume',
  manual_retry: 'retry',
  paused: 'pause',
  unpaused: 'unpause',
  method_replaced: 'new card',
};

/** Without the currency, for which the picture has no room. */
const amountText = ({ amountMinor, currency }: { amountMinor: number; currency: string }): string =>
  formatAmount(amountMinor, currency).replace(/ .*/, '');

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
