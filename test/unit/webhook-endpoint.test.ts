import { describe, expect, it } from 'vitest';
import { endpointProblem, isAllowedAddress } from '../../runtime/webhook-address.ts';

const PRODUCTION = { allowLoopback: false };
const DEVELOPMENT = { allowLoopback: true };

const NOT_HTTPS = 'must be an absolute https URL';
const NOT_PUBLIC = 'must have a public address';

describe('webhook endpoint', () => {
  it.each([
    'https://example.com/hooks?shop=7',
    'https://example.com:8443/',
    'https://hooks.example.co.uk',
    'https://93.184.216.34/hooks',
    'https://[2606:4700::1111]/hooks',
    `https://example.com/${'a'.repeat(2_028)}`,
    `https://example.com/${'𠮷'.repeat(2_028)}`,
  ])('may be %s [D-55]', (url) => {
    expect(endpointProblem(url, PRODUCTION)).toBeUndefined();
  });

  it.each([
    ['http://example.com/', NOT_HTTPS],
    ['ftp://example.com/', NOT_HTTPS],
    ['javascript:alert(1)', NOT_HTTPS],
    ['example.com/hooks', NOT_HTTPS],
    ['//example.com/hooks', NOT_HTTPS],
    ['', NOT_HTTPS],
    ['https://', NOT_HTTPS],
    [' https://example.com/', NOT_HTTPS],
    ['https://exa\nmple.com/', NOT_HTTPS],
    ['https://example.com/\u0001', NOT_HTTPS],
    ['https://example.com/\u007f', NOT_HTTPS],
    ['https:example.com/x', NOT_HTTPS],
    ['https:/example.com/x', NOT_HTTPS],
    ['https:\\\\example.com\\x', NOT_HTTPS],
    ['https://:@example.com/', 'must not contain credentials'],
    ['https://@example.com/', 'must not contain credentials'],
    ['https://user:pass@example.com/', 'must not contain credentials'],
    ['https://user@example.com/', 'must not contain credentials'],
    [`https://example.com/${'a'.repeat(2_029)}`, 'must have at most 2048 characters'],
    ['https://127.0.0.1/', NOT_PUBLIC],
    ['https://2130706433/', NOT_PUBLIC],
    ['https://0x7f.1/', NOT_PUBLIC],
    ['https://0177.0.0.1/', NOT_PUBLIC],
    ['https://0/', NOT_PUBLIC],
    ['https://10.1.2.3/', NOT_PUBLIC],
    ['https://172.16.0.1/', NOT_PUBLIC],
    ['https://192.168.1.1/', NOT_PUBLIC],
    ['https://100.64.0.1/', NOT_PUBLIC],
    ['https://169.254.169.254/latest/meta-data/', NOT_PUBLIC],
    ['https://168.63.129.16/', NOT_PUBLIC],
    ['https://224.0.0.1/', NOT_PUBLIC],
    ['https://255.255.255.255/', NOT_PUBLIC],
    ['https://[::1]/', NOT_PUBLIC],
    ['https://[::]/', NOT_PUBLIC],
    ['https://[::ffff:127.0.0.1]/', NOT_PUBLIC],
    ['https://[::ffff:a9fe:a9fe]/', NOT_PUBLIC],
    ['https://[::7f00:1]/', NOT_PUBLIC],
    ['https://[64:ff9b::7f00:1]/', NOT_PUBLIC],
    ['https://[2002:7f00:1::]/', NOT_PUBLIC],
    ['https://[fd00::1]/', NOT_PUBLIC],
    ['https://[fe80::1]/', NOT_PUBLIC],
    ['https://localhost/', NOT_PUBLIC],
    ['https://LOCALHOST./', NOT_PUBLIC],
    ['https://shop.localhost/', NOT_PUBLIC],
  ])('is refused as %j: %s [D-55, IF-4.15]', (url, problem) => {
    expect(endpointProblem(url, PRODUCTION)).toBe(problem);
  });

  it.each([
    'http://127.0.0.1:9000/',
    'http://localhost:9000/',
    'http://[::1]/',
    'https://localhost/',
  ])('may be %s where development allows loopback [D-55]', (url) => {
    expect(endpointProblem(url, DEVELOPMENT)).toBeUndefined();
  });

  it.each([
    ['http://example.com/', NOT_HTTPS],
    ['http://10.0.0.1/', NOT_HTTPS],
    ['https://10.0.0.1/', NOT_PUBLIC],
    ['https://169.254.169.254/', NOT_PUBLIC],
    ['http://127.0.0.1.example.com/', NOT_HTTPS],
  ])('is refused as %s also where development allows loopback [D-55]', (url, problem) => {
    expect(endpointProblem(url, DEVELOPMENT)).toBe(problem);
  });

  it('has its resolved addresses checked by the same rules [D-55]', () => {
    const addresses = ['93.184.216.34', '127.0.0.1', '::1', '::ffff:10.0.0.1', 'not an address'];
    const allowedBy = (rules: typeof PRODUCTION) =>
      addresses.filter((address) => isAllowedAddress(address, rules));
    expect(allowedBy(PRODUCTION)).toEqual(['93.184.216.34']);
    expect(allowedBy(DEVELOPMENT)).toEqual(['93.184.216.34', '127.0.0.1', '::1']);
  });
});
