import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

/** Returns the plot as the text of an SVG file with a white background. */
export function svgOf(options: Plot.PlotOptions): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const style = { background: 'white', fontSize: '12px' };
  const svg = Plot.plot({ document, width: 820, style, ...options });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  svg.setAttribute('role', 'img');
  // A screen reader has no use for the names of Plot's groups, which may have none.
  for (const group of svg.querySelectorAll('g[aria-label]')) group.removeAttribute('aria-label');
  return `${svg.outerHTML}\n`;
}
