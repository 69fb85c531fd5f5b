import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import type { Language } from './language.ts';
import { STYLE } from './style.ts';

export interface PageFrame {
  readonly language: Language;
  readonly title: string;
  /** The nonce of this answer's Content-Security-Policy. */
  readonly nonce: string;
  /** The browser opens `url` after `seconds`. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
  readonly children: ComponentChildren;
}

/** Renders a whole page as HTML. The page loads no script, no image and no font. */
export function renderPage(frame: PageFrame): string {
  const { language, title, nonce, refresh, children } = frame;
  const page = (
    <html lang={language.locale} dir={language.direction}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {refresh && (
          <meta http-equiv="refresh" content={`${refresh.seconds}; url=${refresh.url}`} />
        )}
        <title>{title}</title>
        {/* A constant needs no escaping, and escaping would break its selectors. */}
        <style nonce={nonce} dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <main>{children}</main>
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}\n`;
}
