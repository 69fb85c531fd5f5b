import { createHash } from 'node:crypto';

/** A script inside a page. No page needs its script: without it, the page works in the same way. */
export interface PageScript {
  readonly text: string;
  /** The source for `script-src` of the Content-Security-Policy: the hash of the text, so that no other script runs. */
  readonly source: string;
}

function pageScript(text: string): PageScript {
  return { text, source: `'sha256-${createHash('sha256').update(text).digest('base64')}'` };
}

/**
 * Requests `data-url` every `data-seconds`, and opens it as soon as it has another title. A reload would take a
 * screen reader back to the top of the page.
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
