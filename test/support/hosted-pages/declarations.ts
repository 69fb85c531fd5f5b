import type { DeclarationKind } from '../../../domain/declaration.ts';
import { declarationPath } from '../../../runtime/payer-links.ts';
import type { Answer, ApiEnvironment } from '../api-environment.ts';
import { fieldsOf } from './page-text.ts';
import { browse, postForm } from './visits.ts';

export const ADA = { name: 'Ada Example', email: 'ada@example.com' };

let payers = 0;

/** Opens a merchant's page for declarations. Each payer has a new IP address unless `address` is given. */
export async function openDeclaration(
  api: ApiEnvironment,
  kind: DeclarationKind,
  { locale = 'en', address = '', query = '' } = {},
) {
  payers += 1;
  const path = declarationPath(kind, api.merchant.merchantId);
  const headers = {
    'accept-language': locale,
    'x-forwarded-for': address || `192.0.2.${payers}`,
  };
  const page = await browse(api, path + query, { headers });
  const hidden = fieldsOf(page.text).filter(({ name }) => ['visit', 'form_token'].includes(name));
  const own = Object.fromEntries(hidden.map(({ name, value = '' }) => [name, value]));
  const submit = (fields: Record<string, string>) =>
    postForm(api, path, { ...own, ...fields }, headers);
  return {
    page,
    submit,
    /** Submits the form, expects the redirect to the confirmation, and requests it. */
    async declare(fields: Record<string, string>): Promise<Answer & { path: string }> {
      const answer = await submit(fields);
      const target = String(answer.headers['location']);
      if (answer.status !== 303) throw new Error(`${answer.status} ${answer.text}`);
      return { ...(await browse(api, target, { headers })), path: target };
    },
  };
}
