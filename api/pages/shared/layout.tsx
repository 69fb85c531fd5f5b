import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { STYLE } from './style.ts';

export interface PageFrame {
  readonly title: string;
  /** Of this answer's content security policy. */
  readonly nonce: string;
  /** Reload, or go elsewhere, after so many seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
  readonly children: ComponentChildren;
}

/** A whole page as HTML text. No script, no image, no font: nothing but this document is loaded. */
export function renderPage(frame: PageFrame): string {
  const { title, nonce, refresh, children } = frame;
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {refresh && (
          <meta http-equiv="refresh" content={`${refresh.seconds}; url=${refresh.url}`} />
        )}
        <title>{title}</title>
        {/* Our own constant: escaping would break its selectors. */}
        <style nonce={nonce} dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <main>{children}</main>
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}\n`;
}
