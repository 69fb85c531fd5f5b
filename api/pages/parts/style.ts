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
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 2rem; }
main > * { max-width: 30rem; margin-left: auto; margin-right: auto; }
main > .columns { max-width: 28rem; }
:lang(ja) { word-break: auto-phrase; }
.logo { display: block; max-height: 3rem; max-width: 12rem; margin-bottom: 1rem; }
footer { text-align: center; padding: 0 1rem 2rem; }
footer a { display: inline-block; margin: 0 .75rem; }
.card {
  background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.25rem;
  margin-bottom: 1rem;
}
html[dir=ltr] main [dir] { text-align: left; }
html[dir=rtl] main [dir] { text-align: right; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; text-wrap: balance; }
h2 { font-size: 1.05rem; margin: 0 0 .75rem; }
p { margin: .25rem 0 .75rem; overflow-wrap: anywhere; }
.given { display: flex; flex-wrap: wrap; gap: 0 .75rem; }
.soft { color: var(--soft); }
.from { color: var(--soft); margin: 0 0 1rem; }
dl { margin: 1rem 0 0; }
dl { display: grid; grid-template-columns: fit-content(55%) 1fr; gap: .35rem 1rem; align-items: baseline; }
dl > div { display: contents; }
dt { color: var(--soft); }
dd {
  margin: 0; text-align: end; text-wrap: balance;
  font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere;
}
dl > :first-child { font-weight: 600; font-size: 1.1rem; }
label { display: block; font-weight: 600; margin: .85rem 0 .25rem; }
input {
  width: 100%; font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--soft); border-radius: .5rem; padding: .6rem .7rem;
}
input::placeholder { color: var(--soft); opacity: 1; }
input[aria-invalid=true] { border: 2px solid var(--bad); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(7rem, 100%), 1fr)); gap: 0 1rem; }
.pair label, .pair > div { min-width: 0; }
button, .button {
  display: block; width: 100%; margin: 1.25rem 0 0; padding: .75rem 1rem; border: 1px solid transparent;
  border-radius: .5rem; background: var(--brand, var(--action));
  color: var(--brand-ink, var(--action-ink));
  font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
}
button[aria-busy]::after { content: ' …'; }
.mark { width: 1.5em; height: 1em; vertical-align: -.12em; margin-inline-end: .4em; }
a { color: var(--action); }
.brand { float: inline-end; margin: .85rem 0 0; color: var(--soft); }
.leave { text-align: center; margin: 1rem 0 0; }
.consent { margin: .75rem 0 0; font-size: .875rem; }
:focus-visible { outline: 3px solid var(--action); outline-offset: 2px; }
.bad {
  background: var(--bad-ground); color: var(--bad); border: 1px solid transparent; border-radius: .5rem;
  padding: .75rem .9rem;
}
h1 + .bad { margin-top: .75rem; }
.problem { color: var(--bad); margin: .25rem 0 0; }
.note {
  background: var(--note-ground); color: var(--note); border: 1px solid transparent;
  border-radius: .75rem; padding: .75rem 1rem;
  margin-bottom: 1rem;
}
.note summary { cursor: pointer; font-weight: 600; }
.note table { border-collapse: collapse; width: 100%; margin-top: .5rem; font-size: .85rem; }
.note td { text-align: start; padding: .15rem .5rem .15rem 0; vertical-align: top; }
.note td { overflow-wrap: anywhere; }
@media (min-width: 58rem) {
  main > .columns {
    max-width: none; display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; align-items: start;
  }
}
.note td:first-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
@media (max-width: 28em) {
  dl, dl > div { display: block; }
  dl > div { margin-bottom: .5rem; }
  dd { text-align: start; }
}
@media (max-width: 20em) {
  /* A date, which never breaks, fits on a screen of 180 px. */
  body { font-size: min(1rem, 5.6vw); overflow-wrap: anywhere; hyphens: auto; }
  main { padding: .75rem .5rem 2rem; }
  dl > :first-child { font-size: inherit; }
  .card { padding: .75rem; }
  .note td { display: block; white-space: normal; }
}
`;
