import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { inkOn } from '../../../domain/branding.ts';
import type { Branding } from '../../../domain/branding.ts';
import type { Language } from './language.ts';
import type { PageScript } from './scripts.tsx';
import { STYLE } from './style.ts';

export interface PageFrame {
  readonly language: Language;
  readonly title: string;
  readonly nonce: string;
  readonly branding?: Branding | undefined;
  /** The browser opens `url` after `seconds` seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string } | undefined;
  /** The page waits for an outcome. The browser requests `url`, which shows the outcome, every `seconds` seconds. */
  readonly wait?: { readonly seconds: number; readonly url: string } | undefined;
  readonly script?: PageScript | undefined;
  readonly children: ComponentChildren;
}

export function renderPage(frame: PageFrame): string {
  const { language, title, nonce, branding = {}, refresh, wait, script, children } = frame;
  const page = (
    <html lang={language.locale} dir={language.direction}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {refresh && <Refresh {...refresh} />}
        {wait && (
          <noscript>
            <Refresh {...wait} />
          </noscript>
        )}
        <title>{title}</title>
        {/* Escaping would break the selectors. The style is our own, and its colour is checked. */}
        <style nonce={nonce} dangerouslySetInnerHTML={{ __html: STYLE + brandStyle(branding) }} />
      </head>
      <body>
        <main>
          {/* The `alt` text is empty, because the page also has the merchant's name as text. */}
          {branding.logoUrl && <img class="logo" src={branding.logoUrl} alt="" />}
          {children}
        </main>
        <BrandLinks language={language} branding={branding} />
        {script && (
          <script
            data-url={wait?.url}
            data-seconds={wait?.seconds}
            dangerouslySetInnerHTML={{ __html: script.text }}
          />
        )}
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}\n`;
}

function Refresh({ seconds, url }: { seconds: number; url: string }) {
  return <meta http-equiv="refresh" content={`${seconds}; url=${url}`} />;
}

/** The links open in a new tab, so that a payer who reads the terms loses no typed value. */
function BrandLinks({ language: { say }, branding }: { language: Language; branding: Branding }) {
  const { termsUrl, supportUrl } = branding;
  if (termsUrl === undefined && supportUrl === undefined) return null;
  const link = (href: string | undefined, text: string) =>
    href === undefined ? null : (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {text}
      </a>
    );
  return (
    <footer>
      {link(termsUrl, say('termsLink'))} {link(supportUrl, say('supportLink'))}
    </footer>
  );
}

/** Returns the rule for the merchant's colour; empty without a colour on which text can be read. */
function brandStyle({ colour }: Branding): string {
  const ink = colour === undefined ? null : inkOn(colour);
  return ink === null ? '' : `:root { --brand: ${colour}; --brand-ink: ${ink}; }\n`;
}
