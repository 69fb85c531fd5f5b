import { join } from 'node:path';
import { createClient } from '../../../client/index.ts';
import type { ClientSettings } from '../../../client/index.ts';
import { readDemoFile } from '../../../cli/command-line/demo-file.ts';
import { loadEmbeddedConfig } from '../../config.ts';
import { processEnvironment } from '../../../runtime/environment.ts';

/**
 * Address and credentials of a merchant: API_URL, KEY_ID and SECRET, else the demo merchant of `npm start`.
 *
 * @throws Error that says to run `npm start` first.
 */
export function merchantAccess() {
  const { API_URL: apiUrl, KEY_ID: keyId, SECRET: secret } = processEnvironment();
  const { dataDir } = loadEmbeddedConfig();
  const isGiven = apiUrl !== undefined && keyId !== undefined && secret !== undefined;
  const access = isGiven ? { apiUrl, keyId, secret } : readDemoFile(dataDir);
  return {
    apiUrl: access.apiUrl,
    keyId: access.keyId,
    stateFile: join(dataDir, 'listen.json'),
    client: (settings: Omit<ClientSettings, 'apiUrl' | 'keyId' | 'secret'> = {}) =>
      createClient({ ...settings, ...pick(access) }),
  };
}

const pick = ({ apiUrl, keyId, secret }: ClientSettings) => ({ apiUrl, keyId, secret });
