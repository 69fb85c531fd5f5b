import { createHash } from 'node:crypto';
import { render } from 'preact-render-to-string';
import { NETWORK_DIGITS, NUMBER_DIGITS } from '../../../domain/payment-method.ts';
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

/** The same: first digits, and the number of digits. */
const NETWORK_ROWS = NETWORK_DIGITS.map(({ prefix, digits }) => `[${String(prefix)}, ${digits}]`);

/**
 * Groups the digits of the card number as on the card, and shows the brand. Never adds, removes or reorders digits.
 * Leaves a number with a letter unchanged. Marks the wrong fields of a mistyped card, and does not send it, because the page
 * that comes back has no card number. Marks the button as busy after the first click.
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
const { form } = field;
const texts = JSON.parse(form.dataset.texts);
const { title } = document;
// The digits of Japanese, Arabic and Persian keyboards.
const read = (name) => form[name].value.normalize('NFKC').trim()
  .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (digit) => digit.charCodeAt(0) % 16);
const networks = [${NETWORK_ROWS.join()}];
const numberError = (number) => {
  if (!number) return 'numberMissing';
  if (/\\D/.test(number)) return 'numberUnreadable';
  const [, length] = networks.find(([first]) => first.test(number)) || [];
  if (number.length < (length || ${NUMBER_DIGITS.min})) return 'numberTooShort';
  if (number.length > (length || ${NUMBER_DIGITS.max})) return 'numberTooLong';
  const sum = [...number].reverse().reduce((sum, digit, at) => sum + [...String(digit * (1 + at % 2))].reduce((a, b) => +a + +b, 0), 0);
  // One of the test cards that the page lists has a wrong check digit on purpose.
  const isListed = document.querySelector('.note')?.textContent.includes(number.replace(${FOURS}, '$& '));
  return sum % 10 && !isListed && 'numberMistyped';
};
const expiryError = (text) => {
  const [, month, year] = /^(0?[1-9](?=\\D)|0[1-9]|1[0-2])(?:\\s*[/ .-]\\s*)?(\\d{4}|\\d{2})$/.exec(text) || [];
  if (!month) return 'expiryUnreadable';
  // A browser whose clock is months off opens no https page.
  return Date.now() >= Date.UTC(year < 100 ? 2000 + +year : year, month, 1) && 'expiryPast';
};
const cvcError = (cvc, number) => /^3[47]/.test(number)
  ? !/^\\d{4}$/.test(cvc) && 'cvcFour'
  : !/^\\d{3}$/.test(cvc) && 'cvcThree';
const mark = (name, error) => {
  const problem = document.getElementById(name + '-problem');
  problem.textContent = texts[error] || '';
  problem.hidden = !error;
  form[name].setAttribute('aria-invalid', !!error);
  if (error) form[name].setAttribute('aria-describedby', problem.id);
  return error ? [form[name]] : [];
};
const button = form.querySelector('button');
form.addEventListener('submit', (event) => {
  const number = digitsOf(read('number'));
  const [wrong] = [
    ...mark('number', numberError(number)),
    ...mark('expiry', expiryError(read('expiry'))),
    ...mark('cvc', cvcError(read('cvc'), number)),
  ];
  if (button.ariaBusy || wrong) event.preventDefault();
  document.title = (wrong ? texts.title : '') + title.replace(texts.title, '');
  wrong ? wrong.focus() : (button.ariaBusy = 'true');
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
const title = document.querySelector('title').textContent;
const reader = document.createElement('textarea');
const wait = () => setTimeout(look, seconds * 1000);
const look = async () => {
  try {
    const answer = await (await fetch(url)).text();
    // Not a DOMParser, whose document would break the policy of this page.
    reader.innerHTML = (/<title>([^]*?)<\\/title>/.exec(answer) || [])[1] || '';
    if (reader.value && reader.value !== title) return location.replace(url);
  } catch {}
  wait();
};
wait();
}`);
