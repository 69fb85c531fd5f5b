import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Writes a self-signed certificate for the host name, and its key. Returns both paths. */
export function makeCertificate(folder: string, hostName: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
  const subject = ['-subj', `/CN=${hostName}`, '-addext', `subjectAltName=DNS:${hostName}`];
  const files = ['-nodes', '-days', '2', '-keyout', key, '-out', cert];
  execFileSync('openssl', [...request, ...subject, ...files], { stdio: 'ignore' });
  return { cert, key };
}
