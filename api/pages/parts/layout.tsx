import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { inkOn } from '../../../domain/branding.ts';
import type { Branding } from '../../../domain/branding.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { PageScript } from './scripts.tsx';

export interface PageFrame {
  readonly language: Language;
  readonly title: string;
  /** Absent on the page of an unknown URL. */
  readonly merchantName?: string | undefined;
  readonly nonce: string;
  readonly branding?: Branding | undefined;
  /** Where the payer cancels or withdraws. */
  readonly leave?: readonly { readonly href: string; readonly text: string }[];
  /** The browser opens `url` after `seconds` seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
  /** The page waits for an outcome. The browser requests `url`, which shows the outcome, every `seconds` seconds. */
  readonly wait?: { readonly seconds: number; readonly url: string } | undefined;
  readonly script?: PageScript | undefined;
  readonly children: ComponentChildren;
}

export function renderPage(frame: PageFrame): string {
  const { language, merchantName, nonce, branding = {}, leave = [], children } = frame;
  const { refresh, wait, script } = frame;
  const title = merchantName === undefined ? frame.title : `${frame.title} · ${merchantName}`;
  const page = (
    <html lang={language.locale} dir={language.direction}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {refresh && <Refresh {...refresh} />}
        {wait && (
          <noscript>
            <Refresh {...wait} />
          </noscript>
        )}
        <title>{title}</title>
        {branding.logoUrl && <link rel="icon" href={branding.logoUrl} />}
        {/* Escaping would break the selectors. The style is our own, and its colour is checked. */}
        <style nonce={nonce} dangerouslySetInnerHTML={{ __html: STYLE + brandStyle(branding) }} />
      </head>
      <body>
        <main>
          {/* The `alt` text is empty, because the page also has the merchant's name as text. */}
          {branding.logoUrl && <img class="logo" src={branding.logoUrl} alt="" />}
          {merchantName !== undefined && (
            <p class="from" dir="auto">
              {merchantName}
            </p>
          )}
          {children}
        </main>
        <Links language={language} branding={branding} leave={leave} />
        {script && (
          <script
            data-url={wait?.url}
            data-seconds={wait?.seconds}
            dangerouslySetInnerHTML={{ __html: script.text }}
          />
        )}
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}\n`;
}

function Refresh({ seconds, url }: { seconds: number; url: string }) {
  return <meta http-equiv="refresh" content={`${seconds}; url=${url}`} />;
}

/** The links open in a new tab, so that a payer who reads the terms loses no typed value. */
function Links(props: {
  language: Language;
  branding: Branding;
  leave: NonNullable<PageFrame['leave']>;
}) {
  const { language, branding, leave } = props;
  const { say } = language;
  const { termsUrl, supportUrl } = branding;
  if (termsUrl === undefined && supportUrl === undefined && leave.length === 0) return null;
  const link = (href: string | undefined, text: string) =>
    href === undefined ? null : (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    );
  return (
    <footer>
      {link(termsUrl, say('termsLink'))} {link(supportUrl, say('supportLink'))}{' '}
      {leave.map(({ href, text }) => link(href, text))}
    </footer>
  );
}

/** Returns the rule for the merchant's colour; empty without a colour on which text can be read. */
function brandStyle({ colour }: Branding): string {
  const ink = colour === undefined ? null : inkOn(colour);
  return ink === null ? '' : `:root { --brand: ${colour}; --brand-ink: ${ink}; }\n`;
}

/**
 * Contrast at least 4.5 : 1 in both schemes. Lengths in `rem` follow the payer's font size. In forced colours a
 * transparent border shows the edges of buttons and boxes.
 */
export const STYLE = `
:root {
  --ground: #f4f5f7; --card: #ffffff; --ink: #1c2330; --soft: #566072; --line: #c9cfd9;
  --action: #1f4fd8; --action-ink: #ffffff; --bad: #a4161a; --bad-ground: #fdecec;
  --note: #6b4a00; --note-ground: #fff4d6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12151c; --card: #1b2029; --ink: #eef1f6; --soft: #a9b3c4; --line: #465064;
    --action: #8fb0ff; --action-ink: #0d1526; --bad: #ffb3b3; --bad-ground: #431a1d;
    --note: #ffdf94; --note-ground: #3a2f10;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 1rem 1rem 2rem; }
main > * { max-width: 30rem; margin-left: auto; margin-right: auto; }
main > .columns { max-width: 28rem; }
:lang(ja) { word-break: auto-phrase; }
.logo { display: block; width: 100%; height: 3rem; object-fit: scale-down; object-position: left; margin-bottom: .5rem; }
html[dir=rtl] .logo { object-position: right; }
footer { text-align: center; padding: 0 1rem 2rem; }
footer a { display: inline-block; margin: 0 .75rem; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1rem 1.25rem;
  margin-bottom: .75rem;
}
html[dir=ltr] main [dir] { text-align: left; }
html[dir=rtl] main [dir] { text-align: right; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; }
p { margin: .25rem 0 .75rem; overflow-wrap: anywhere; }
.small { font-size: .875rem; margin: .5rem 0 0; }
.given { display: flex; flex-wrap: wrap; gap: 0 .75rem; }
.soft { color: var(--soft); }
.from { font-weight: 600; margin: 0 auto .5rem; }
dl { margin: .5rem 0 0; }
dl { display: grid; grid-template-columns: fit-content(55%) 1fr; gap: .35rem 1rem; align-items: baseline; }
dl > div { display: contents; }
dt { color: var(--soft); }
dd {
  margin: 0; text-align: end; text-wrap: balance;
  font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
/* The amount due is the largest text. If only the title has it, the title is as large. */
.sum dd, .sale:not(:has(.sum)) h1 { font-weight: 600; font-size: 1.85rem; line-height: 1.2; }
label { display: block; font-weight: 600; margin: .6rem 0 .2rem; }
input, textarea {
  width: 100%; font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--soft); border-radius: .5rem; padding: .6rem .7rem;
}
input::placeholder { color: var(--soft); opacity: 1; }
:is(input, textarea)[aria-invalid=true] { border: 2px solid var(--bad); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(7rem, 100%), 1fr)); gap: 0 1rem; }
.pair label, .pair > div { min-width: 0; }
button, .button {
  display: block; width: 100%; margin: 1.25rem 0 0; padding: .75rem 1rem; border: 1px solid transparent;
  border-radius: .5rem; background: var(--brand, var(--action));
  color: var(--brand-ink, var(--action-ink));
  font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
}
button.quiet { background: none; border-color: var(--soft); color: inherit; }
fieldset { border: 0; margin: .6rem 0 0; padding: 0; min-width: 0; }
legend { font-weight: 600; padding: 0; }
.choice { display: flex; gap: .6rem; font-weight: 400; }
.choice input { width: auto; flex: none; }
button[aria-busy]::after { content: ' …'; }
.mark { width: 1.5em; height: 1em; vertical-align: -.12em; margin-inline-end: .4em; }
a { color: var(--action); }
.brand { float: inline-end; margin: .6rem 0 0; color: var(--soft); }
.card > form:first-child button { margin: 0 0 1.25rem; }
.leave { text-align: center; margin: 1rem 0 0; }
:focus-visible { outline: 3px solid var(--action); outline-offset: 2px; }
.bad {
  background: var(--bad-ground); color: var(--bad); border: 1px solid transparent; border-radius: .5rem;
  padding: .75rem .9rem;
}
h1 + .bad { margin-top: .75rem; }
.problem { color: var(--bad); margin: .25rem 0 0; }
.note {
  background: var(--note-ground); color: var(--note); border: 1px solid transparent;
  border-radius: .75rem; padding: .4rem 1rem; font-size: .875rem;
  margin-bottom: .75rem;
}
.note summary { cursor: pointer; font-weight: 600; }
.note table { border-collapse: collapse; width: 100%; margin-top: .5rem; font-size: .85rem; }
.note td { text-align: start; padding: .15rem .5rem .15rem 0; vertical-align: top; }
.note td { overflow-wrap: anywhere; }
@media print {
  footer, button, .button { display:none; }
}
@media (min-width: 58rem) {
  main:has(> .columns) > :is(p, .logo) { max-width: none; }
  main > .columns {
    max-width: none; display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; align-items: start;
  }
}
.note td:first-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 28em) {
  dl, dl > div { display: block; }
  dl > div { margin-bottom: .35rem; line-height: 1.3; }
  dt { font-size: .875rem; }
  dd { text-align: start; }
  /* The button of a short form is on the first screen. */
  main { padding-top: .75rem; }
  .card { padding: .75rem 1rem; }
  label { margin-top: .4rem; }
  input { padding: .5rem .7rem; }
  button, .button { margin-top: .9rem; }
}
@media (max-width: 20em) {
  /* A date, which never breaks, fits on a screen of 180 px. */
  body { font-size: min(1rem, 5.6vw); overflow-wrap: anywhere; hyphens: auto; }
  main { padding: .75rem .5rem 2rem; }
  .sum dd, .sale:not(:has(.sum)) h1 { font-size: inherit; }
  .card { padding: .75rem; }
  .note td { display: block; white-space: normal; }
}
`;
