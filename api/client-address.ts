import ipaddr from 'ipaddr.js';
import type { Context } from './context.ts';

/** Returns the client's address; for IPv6 its /64 network, because one client has all addresses of a /64. */
export function addressOf({ ip }: Context): string {
  if (!ipaddr.isValid(ip)) return ip;
  const address = ipaddr.process(ip);
  return address.kind() === 'ipv6'
    ? address.toByteArray().slice(0, 8).join('.')
    : address.toString();
}
