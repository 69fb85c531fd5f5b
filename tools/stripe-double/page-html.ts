import type { Stored } from './book.ts';

export function cardPage(session: Stored, error?: string): string {
  const cancelUrl = session.body['cancel_url'];
  const { submit } = session.body['custom_text'] as { submit: { message: string } | null };
  return page(
    'Checkout',
    `${error === undefined ? '' : `<p role="alert">${escaped(error)}</p>`}
<form method="post" action="/checkout/${escaped(session.id)}">
<label for="number">Card number</label> <input id="number" name="number" autocomplete="cc-number" required><br>
<label for="expiry">Expiry</label> <input id="expiry" name="expiry" placeholder="MM / YY" autocomplete="cc-exp" required><br>
<label for="cvc">CVC</label> <input id="cvc" name="cvc" autocomplete="cc-csc" required><br>
<label for="name">Cardholder name</label> <input id="name" name="name" autocomplete="cc-name"><br>
${submit === null ? '' : `<p>${escaped(submit.message)}</p>`}
<button>Save card</button>
</form>
${typeof cancelUrl === 'string' ? `<a href="${escaped(cancelUrl)}">Back</a>` : ''}`,
  );
}

export function closedPage(session: Stored): string {
  return page('Checkout', `<p>This session is ${escaped(String(session.body['status']))}.</p>`);
}

/** The page on which the payer completes or fails 3D Secure. */
export function challengePage(intentId: string): string {
  return page(
    '3D Secure',
    `<form method="post" action="/challenge/${escaped(intentId)}">
<button name="outcome" value="complete">Complete</button>
<button name="outcome" value="fail">Fail</button>
</form>`,
  );
}

function page(title: string, content: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<h1>${title} (test double of Stripe)</h1>
${content}
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
