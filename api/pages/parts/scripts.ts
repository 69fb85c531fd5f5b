import { createHash } from 'node:crypto';

/** A script inside a page. Every page also works without its script. */
export interface PageScript {
  readonly text: string;
  readonly source: string;
}

function pageScript(text: string): PageScript {
  return { text, source: `'sha256-${createHash('sha256').update(text).digest('base64')}'` };
}

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
const brands = [
  ['Visa', /^4/],
  ['Mastercard', /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/],
  ['American Express', /^3[47]/, [4, 6, 5]],
  ['Diners Club', /^3(0[0-5]|[689])/, [4, 6, 4]],
  ['Discover', /^6(011|4[4-9]|5)/],
  ['JCB', /^35(2[89]|[3-8])/],
  ['UnionPay', /^62/],
];
const digitsOf = (text) => text.replace(/[\\s-]/g, '');
const update = (inputType) => {
  const digits = digitsOf(field.value);
  const [name = '', , groups = [4, 4, 4, 4]] = brands.find(([, first]) => first.test(digits)) || [];
  if (shown.value !== name) shown.value = name;
  if (/\\D/.test(digits)) return;
  let caret = digitsOf(field.value.slice(0, field.selectionStart)).length;
  const parts = [];
  let rest = digits;
  for (const length of groups) {
    parts.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  const text = [...parts, rest].filter(Boolean).join(' ');
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
 * Requests `data-url` every `data-seconds` seconds, and opens this URL as soon as its page has another title. A reload
 * at each request would take a screen reader back to the top of the page.
 */
export const WAIT_SCRIPT = pageScript(`{
const { url, seconds } = document.currentScript.dataset;
const wait = () => setTimeout(look, seconds * 1000);
const look = async () => {
  try {
    const answer = await (await fetch(url)).text();
    if (!answer.includes('<title>' + document.title + '</title>')) return location.replace(url);
  } catch {}
  wait();
};
wait();
}`);
