import { render } from 'preact-render-to-string';
import { inkOn } from '../../domain/branding.ts';
import type { Branding } from '../../domain/branding.ts';
import type { Language } from '../../domain/language/language.ts';
import type { Link, MailContent } from './compose.ts';

interface MailFrame {
  readonly language: Language;
  readonly merchantName: string;
  readonly branding: Branding;
  readonly isTest: boolean;
  readonly content: MailContent;
}

const BUTTON_COLOUR = '#1f4fd8';

/** Returns the e-mail as text and as HTML without pictures and scripts, of which mail programs show little. */
export function renderMail(frame: MailFrame): { text: string; html: string } {
  const { content } = frame;
  const footer = footerOf(frame);
  const blocks = [
    content.title,
    ...content.texts,
    content.lines.map(({ label, text }) => `${label}: ${text}`).join('\n'),
    content.action === null ? '' : linkText(content.action),
    content.leave.map(linkText).join('\n'),
    footer.links.map(linkText).join('\n'),
    footer.texts.join('\n'),
  ];
  const text = `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
  return { text, html: `<!DOCTYPE html>${render(<Mail {...frame} />)}` };
}

const linkText = ({ text, url }: Link): string => `${text}:\n${url}`;

function footerOf({ language: { say }, merchantName: name, branding, isTest }: MailFrame) {
  const { termsUrl, supportUrl } = branding;
  return {
    texts: [say('datesInUtc'), say('whyMail', { name }), ...(isTest ? [say('testMode')] : [])],
    links: [
      ...(termsUrl === undefined ? [] : [{ text: say('termsLink'), url: termsUrl }]),
      ...(supportUrl === undefined ? [] : [{ text: say('supportLink'), url: supportUrl }]),
    ],
  };
}

/** Mail programs ignore style sheets, so that each element has its own style. */
function Mail(frame: MailFrame) {
  const { language, merchantName, branding, content } = frame;
  const { title, texts, lines, action, leave } = content;
  const { colour = BUTTON_COLOUR } = branding;
  const footer = footerOf(frame);
  const soft = 'color:#5a6478;font-size:13px';
  const button = `background:${colour};color:${inkOn(colour) ?? '#ffffff'};padding:12px 20px;border-radius:6px;text-decoration:none;display:inline-block`;
  return (
    <html lang={language.locale} dir={language.direction}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
      </head>
      <body style="margin:0;padding:24px;font-family:system-ui,sans-serif;font-size:16px;line-height:1.5;color:#0d1526">
        <div style="max-width:560px;margin:0 auto">
          <p style={soft} dir="auto">
            {merchantName}
          </p>
          <h1 style="font-size:22px;line-height:1.3">{title}</h1>
          {texts.map((text) => (
            <p>{text}</p>
          ))}
          {lines.length > 0 && (
            <table role="presentation" style="border-collapse:collapse;width:100%">
              {lines.map(({ label, text }) => (
                <tr>
                  <td style={`${soft};padding:6px 12px 6px 0;vertical-align:top`}>{label}</td>
                  <td style="padding:6px 0;vertical-align:top">{text}</td>
                </tr>
              ))}
            </table>
          )}
          {action && (
            <p>
              <a href={action.url} style={button}>
                {action.text}
              </a>
            </p>
          )}
          {[...leave, ...footer.links].map(({ text, url }) => (
            <p style={soft}>
              <a href={url} style="color:#5a6478">
                {text}
              </a>
            </p>
          ))}
          {footer.texts.map((text) => (
            <p style={soft}>{text}</p>
          ))}
        </div>
      </body>
    </html>
  );
}
