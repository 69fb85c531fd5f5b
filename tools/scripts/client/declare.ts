import { openPage, submitForm } from './browser.ts';
import type { Page } from './browser.ts';

/** Declares on a merchant's page for cancellations or withdrawals, in English. Returns the confirmation. */
export async function declare(
  url: string,
  payer: { readonly name: string; readonly email: string; readonly reference: string },
): Promise<Page> {
  return submitOnlyForm(url, {
    Name: payer.name,
    'E-mail address': payer.email,
    'Number of the contract': payer.reference,
  });
}

/** Submits the form by which a payer asks for a link to their own page. */
export async function askForPortal(url: string, email: string): Promise<Page> {
  return submitOnlyForm(url, { 'E-mail address': email });
}

async function submitOnlyForm(url: string, fields: Record<string, string>): Promise<Page> {
  const page = await openPage(url);
  const [form] = page.forms;
  if (form === undefined) throw new Error(`${url} has no form: ${page.title}`);
  return submitForm(page, form, fields);
}
