import { issueCredential } from '../../db/repositories/merchants/credentials.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import type { Failpoint } from '../../runtime/failpoints.ts';
import { PEPPER } from './shop.ts';
import { startOurProcess } from './our-process.ts';
import type { OurProcess } from './our-process.ts';
import type { TestEnvironment } from './test-environment.ts';

export interface ApiProcess extends OurProcess {
  readonly url: string;
}

/** Credentials of the merchant, and a start function for API processes that accept them. */
export async function apiProcesses({ db, merchantId, variables }: TestEnvironment) {
  const credential = { merchantId, mode: 'test', pepper: PEPPER, nowAt: Date.now() } as const;
  const { keyId, secret } = await issueCredential(db, credential);
  return {
    keyId,
    secret,
    authorization: `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`,
    /**
     * Starts an API on `port`, or else on a free port. With `failpoint`, the process kills itself at this
     * point.
     */
    async start(options: { port?: number; failpoint?: Failpoint } = {}): Promise<ApiProcess> {
      const port = String(options.port ?? (await freePort()));
      const api = await startOurProcess('api/main.ts', {
        ...variables,
        API_PORT: port,
        CREDENTIAL_PEPPER: PEPPER,
        ...(options.failpoint ? { FAILPOINT: options.failpoint } : {}),
      });
      return { ...api, url: `http://127.0.0.1:${port}` };
    },
  };
}
