/** Addresses and CIDR ranges as one block list. IPv4-mapped IPv6 addresses count as IPv4. */
import { BlockList, isIP, SocketAddress } from 'node:net';

type Family = 'ipv4' | 'ipv6';

/** An entry that is not valid is reported by its index and skipped. */
export function ipRanges(entries: readonly string[], onProblem?: (index: number, message: string) => void): BlockList {
  const list = new BlockList();
  for (const [index, entry] of entries.entries()) {
    if (!addRange(list, entry)) onProblem?.(index, `${JSON.stringify(entry)} is neither an address nor a CIDR range`);
  }
  return list;
}

/** False for an entry that is not valid. */
function addRange(list: BlockList, entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  const plain = plainAddress(address);
  const family = familyOf(plain);
  if (family === undefined || rest.length > 0) return false;
  if (bits === undefined) {
    list.addAddress(plain, family);
    return true;
  }
  // The prefix of a mapped address counts from the beginning of IPv6.
  const mapped = family === 'ipv4' && isIP(address) === 6 ? 96 : 0;
  const prefix = /^\d{1,3}$/.test(bits) ? Number(bits) - mapped : Number.NaN;
  if (!(prefix >= 0 && prefix <= (family === 'ipv4' ? 32 : 128))) return false;
  list.addSubnet(plain, prefix, family);
  return true;
}

/** False for text that is not an address. */
export function inRanges(list: BlockList, address: string): boolean {
  const plain = plainAddress(address);
  const family = familyOf(plain);
  return family !== undefined && list.check(plain, family);
}

/** Undefined for text that is not an address. */
function familyOf(address: string): Family | undefined {
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? 'ipv4' : 'ipv6';
}

const LOOPBACK = ipRanges(['127.0.0.0/8', '::1']);

/** Whether only this machine can reach the address; false for names. */
export function isLoopback(address: string): boolean {
  return inRanges(LOOPBACK, address);
}

/** Without a zone, in its shortest spelling, and IPv4 where it is IPv4 mapped into IPv6. Other text is returned as it is. */
export function plainAddress(address: string): string {
  const zone = address.indexOf('%');
  const bare = zone < 0 ? address : address.slice(0, zone);
  // A dual-stack socket reports an IPv4 peer like this.
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare)?.[1];
  if (dotted !== undefined) return dotted;
  if (isIP(bare) !== 6) return bare;
  const shortest = new SocketAddress({ address: bare, family: 'ipv6' }).address;
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(shortest)?.[1] ?? shortest;
}
