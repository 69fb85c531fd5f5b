import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import PostalMime from 'postal-mime';
import type { Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';

export type MailServer = Awaited<ReturnType<typeof startMailServer>>;

/** Starts an SMTP server without TLS, which parses each e-mail that it accepts. `port`: of an earlier server. */
export async function startMailServer({ port = 0 } = {}) {
  const received: Email[] = [];
  const replies = new Map<string, string>();
  let answers = Promise.resolve();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    // A client keeps idle connections.
    closeTimeout: 100,
    onRcptTo({ address }, _session, answer) {
      const reply = replies.get(address);
      if (reply === undefined) answer();
      else
        answer(
          Object.assign(new Error(reply.slice(4)), { responseCode: Number(reply.slice(0, 3)) }),
        );
    },
    onData(stream, _session, answer) {
      const parsed = buffer(stream).then((source) => PostalMime.parse(source));
      parsed.then(
        (email) => {
          received.push(email);
          const reply = `queued as ${received.length}`;
          void answers.then(() => answer(null, reply));
        },
        (error: Error) => answer(error),
      );
    },
  });
  const listening = server.listen(port, '127.0.0.1');
  await once(listening, 'listening');
  return {
    /** In the order of their acceptance. */
    received,
    port: (listening.address() as AddressInfo).port,
    settings: {
      smtpUrl: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
      from: 'billing@example.com',
    },
    /** The server refuses this address with this reply, such as `550 no such mailbox`. */
    refuse: (address: string, reply: string) => void replies.set(address, reply),
    accept: (address: string) => void replies.delete(address),
    /** From now on the server takes e-mails, and answers only when `isOpen` resolves. */
    answerAfter(isOpen: Promise<void>) {
      answers = isOpen;
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
      }),
  };
}
