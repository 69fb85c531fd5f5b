import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';

/** Returns the plot as the text of an SVG file with a white background. */
export function svgOf(options: Plot.PlotOptions): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const style = { background: 'white', fontSize: '12px' };
  const svg = Plot.plot({ document, width: 820, style, ...options });
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return `${svg.outerHTML}\n`;
}
