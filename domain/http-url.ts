import { isStorable } from './storable-text.ts';

/** True for an absolute http or https URL that the URL parser reads without dropping or changing a character of it. */
export function isHttpUrl(text: string): boolean {
  return (
    /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(text) &&
    isStorable(text) &&
    // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
    !/[\u0000-\u001f\u007f]/.test(text) &&
    URL.canParse(text)
  );
}
