import { createHash } from 'node:crypto';
import { render } from 'preact-render-to-string';
import { BRANDS, BrandMark, FOURS } from './brands.tsx';

/** A script inside a page. Every page also works without its script. */
export interface PageScript {
  readonly text: string;
  readonly source: string;
}

function pageScript(text: string): PageScript {
  return { text, source: `'sha256-${createHash('sha256').update(text).digest('base64')}'` };
}

/** Arrays of the program in the page: first digits, groups, and the picture with the name. */
const BRAND_ROWS = Object.entries(BRANDS).map(
  ([id, { name, first, groups }]) =>
    `[${String(first)}, ${String(groups)}, '${render(<BrandMark brand={id} />)}${name}']`,
);

/**
 * Groups the digits of the card number as on the card, and shows the brand. Never adds, removes or reorders digits.
 * Leaves a number with a letter unchanged, for the gateway to refuse. Marks the button as busy after the first click.
 */
export const CARD_SCRIPT = pageScript(`{
const field = document.getElementById('number');
const shown = document.createElement('output');
shown.htmlFor = 'number';
shown.className = 'brand';
field.labels[0].before(shown);
const brands = [${BRAND_ROWS.join()}];
let now;
const digitsOf = (text) => text.replace(/[\\s-]/g, '');
const update = (inputType) => {
  const digits = digitsOf(field.value);
  const [first, groups = ${FOURS}, shape] = brands.find(([first]) => first.test(digits)) || [];
  if (first !== now) shown.innerHTML = shape || '';
  now = first;
  if (/\\D/.test(digits)) return;
  let caret = digitsOf(field.value.slice(0, field.selectionStart)).length;
  const text = digits.replace(groups, '$& ');
  if (text === field.value) return;
  for (let at = 0; at < caret; at += 1) if (text[at] === ' ') caret += 1;
  // The key Delete has removed the space that is back now.
  if (inputType === 'deleteContentForward' && text[caret] === ' ') caret += 1;
  field.value = text;
  if (document.activeElement === field) field.setSelectionRange(caret, caret);
};
field.addEventListener('input', (event) => event.isComposing || update(event.inputType));
update('');
const button = field.form.querySelector('button');
field.form.addEventListener('submit', (event) => {
  if (button.ariaBusy) event.preventDefault();
  button.ariaBusy = 'true';
});
// The browser may show the page again as it was left.
addEventListener('pageshow', () => button.removeAttribute('aria-busy'));
}`);

/**
 * Requests `data-url` every `data-seconds` seconds, and opens this URL as soon as it is a page with another title. A reload
 * at each request would take a screen reader back to the top of the page.
 */
export const WAIT_SCRIPT = pageScript(`{
const { url, seconds } = document.currentScript.dataset;
const wait = () => setTimeout(look, seconds * 1000);
const look = async () => {
  try {
    const answer = await (await fetch(url)).text();
    const isPage = answer.includes('<title>');
    if (isPage && !answer.includes('<title>' + document.title + '</title>')) return location.replace(url);
  } catch {}
  wait();
};
wait();
}`);
