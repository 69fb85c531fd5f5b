import { createTransport } from 'nodemailer';
import type { Db } from '../../db/client.ts';
import { readMailFacts } from '../../db/repositories/customers/mail-facts.ts';
import type { MailFacts } from '../../db/repositories/customers/mail-facts.ts';
import type { DeclarationKind } from '../../domain/declaration.ts';
import { languageOf } from '../../domain/language/language.ts';
import { isMailed } from '../../domain/mails.ts';
import { declarationPath, portalLink, updateMethodLink } from '../../runtime/payer-links.ts';
import type { LinkSettings } from '../../runtime/payer-links.ts';
import { within } from '../../runtime/time-limit.ts';
import { beginningOf, resultOf } from '../webhooks/sender.ts';
import type { AttemptResult, SendResult, WebhookRequest } from '../webhooks/sender.ts';
import { compose } from './compose.ts';
import type { MailedEvent } from './compose.ts';
import { renderMail } from './render.tsx';

export interface MailSettings {
  /** `smtps://`, or `smtp://` with STARTTLS where the server offers it, and always if the URL has a password. */
  readonly smtpUrl: string;
  /** The address of the sender. The name is the merchant's. */
  readonly from: string;
}

export interface MailDeps {
  readonly db: Db;
  readonly links: LinkSettings;
  readonly mail: MailSettings;
}

export interface MailSender {
  /** Throws if the database fails, or does not answer within 5 s. */
  send(request: WebhookRequest): Promise<SendResult>;
  close(): void;
}

const READ_WITHIN_MS = 5_000;
const SEND_WITHIN_MS = 15_000;
const CONNECT_WITHIN_MS = 3_000;
const SILENCE_MS = 10_000;
/** Most connections to the mail server from one process. */
const CONNECTIONS = 4;

const PING = 'webhook.ping';

/** Sends the e-mail of an event to its payer. Each repeat of it has the same Message-ID. */
export function createMailSender({ db, links, mail }: MailDeps): MailSender {
  const transport = createTransport(transportOptions(mail.smtpUrl));

  const attempt = async (merchantId: string, event: MailedEvent, facts: MailFacts | null) => {
    const message = messageOf({ event, facts, from: mail.from, links, merchantId });
    if (typeof message === 'string') return answered(NOTHING_SENT, message);
    // Without the signal, a message that waits for a connection would be sent after its time, and again.
    const signal = AbortSignal.timeout(SEND_WITHIN_MS);
    const { response } = await transport.sendMail({ ...message, signal });
    return answered(ACCEPTED, withoutAddress(response, message.to.address));
  };
  const verified = async () => {
    await transport.verify();
    return answered(SERVICE_READY, null);
  };

  return {
    send: async ({ merchantId, body }) => {
      const event = JSON.parse(body.toString('utf8')) as MailedEvent;
      const isPing = event.eventType === PING;
      const read = () => within(READ_WITHIN_MS, readMailFacts(db, { ...event, merchantId }));
      const facts = isPing ? null : await read();
      const startedAt = performance.now();
      const to = event.email ?? facts?.email ?? null;
      const sent = isPing
        ? within(SEND_WITHIN_MS, verified(), overdue)
        : attempt(merchantId, event, facts);
      const result = await sent.catch((error: SmtpError) => failureOf(error, to));
      return { ...result, durationMs: Math.round(performance.now() - startedAt) };
    },
    close: () => transport.close(),
  };
}

const overdue = () => Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' });

const SERVICE_READY = 220;
const ACCEPTED = 250;
/** No reply of SMTP: the delivery is settled without an e-mail. */
const NOTHING_SENT = 204;

const answered = (status: number, answer: string | null) => ({
  kind: 'answered' as const,
  status,
  retryAfter: null,
  answer: answer && beginningOf(answer),
});

interface Message {
  readonly event: MailedEvent;
  readonly facts: MailFacts | null;
  readonly from: string;
  readonly links: LinkSettings;
  readonly merchantId: string;
}

/** Returns the message, or why there is none, as text. */
function messageOf({ event, facts, from, links, merchantId }: Message) {
  const { eventType, eventId } = event;
  if (!isMailed(eventType)) return `no e-mail is made of ${eventType}`;
  // A declaration may contain any address, so only the payer of the contract gets an e-mail.
  if (event.outcome === 'unmatched') return 'no contract has this address';
  const to = event.email ?? facts?.email;
  if (!facts || !to) return 'no e-mail address';
  const { merchantName, branding, isTest } = facts;
  // In test mode a test card is enough to enter another person's address.
  if (isTest && domainOf(to) !== domainOf(from)) {
    return `in test mode only addresses at ${domainOf(from)} get e-mails`;
  }
  const language = languageOf(event.language ?? facts.locale ?? 'en');
  const nowAt = Date.now();
  const pages = pagesOf(links, merchantId, event, facts, nowAt);
  const content = compose(eventType, { event, facts, language, links: pages, nowAt });
  if (content === null) return 'nothing that the payer must know';
  return {
    messageId: `<${eventId}@${domainOf(from)}>`,
    from: { name: merchantName, address: from },
    to: { name: '', address: to },
    subject: `${isTest ? '[TEST] ' : ''}${content.title} · ${merchantName}`.replaceAll(
      /[\u00A0\u202F]/g,
      ' ',
    ),
    headers: { 'Auto-Submitted': 'auto-generated' },
    ...renderMail({ language, merchantName, branding, isTest, content }),
  };
}

const domainOf = (address: string): string =>
  address.slice(address.lastIndexOf('@') + 1).toLowerCase();

function pagesOf(
  links: LinkSettings,
  merchantId: string,
  { subscriptionId }: MailedEvent,
  { paymentMethodId }: MailFacts,
  nowAt: number,
) {
  const updatable = { merchantId, subscriptionId: subscriptionId ?? '', paymentMethodId };
  return {
    declare: (kind: DeclarationKind, reference: string) =>
      links.publicUrl + declarationPath(kind, merchantId, reference),
    updateMethod: () => updateMethodLink(links, updatable, nowAt),
    portal: (id: string) => portalLink(links, { merchantId, id }),
  };
}

function transportOptions(smtpUrl: string) {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const hasUser = username !== '';
  return {
    pool: true as const,
    maxConnections: CONNECTIONS,
    host: hostname,
    ...(port !== '' && { port: Number(port) }),
    secure: protocol === 'smtps:',
    // A password must not cross the network as plain text.
    requireTLS: hasUser,
    ...(hasUser && {
      auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }),
    connectionTimeout: CONNECT_WITHIN_MS,
    greetingTimeout: CONNECT_WITHIN_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

interface SmtpError {
  readonly code?: string;
  /** The cause, if `code` names only the phase. */
  readonly originalCode?: string;
  readonly command?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

/** RFC 3463: 5.1 and 5.2 are about the address and its mailbox. Others at this command are about us, such as 554 5.7.1. */
const REFUSES_ADDRESS = /^5\d\d[ -]5\.[12]\./;
/** The same without an enhanced code. */
const REFUSES_MAILBOX = /^55[013](?![ -]\d\.\d)/;

function failureOf(error: SmtpError, to: string | null): AttemptResult {
  const { code = '', originalCode, command = '', responseCode = 0, response = '' } = error;
  // A reply below 400 to which an error belongs broke the protocol.
  if (responseCode < 400) return resultOf({ code: originalCode ?? CODES[code] ?? code });
  // What a server says of our password or address is not for merchants.
  if (!/^(RCPT TO|DATA)/.test(command)) return answered(responseCode, null);
  const answer = answered(responseCode, withoutAddress(response, to));
  if (command !== 'RCPT TO') return answer;
  const isFinal = REFUSES_ADDRESS.test(response) || REFUSES_MAILBOX.test(response);
  const isOfRecipient = isFinal || responseCode < 500;
  return isOfRecipient ? { ...answer, error: 'refused_recipient', isFinal } : answer;
}

/** Codes of nodemailer, each with Node's code for the same. */
const CODES: Readonly<Record<string, string>> = { EABORT: 'ETIMEDOUT', EPROTOCOL: 'HPE_INVALID' };

const withoutAddress = (response: string, address: string | null): string =>
  address === null ? response : response.replaceAll(address, '…');
