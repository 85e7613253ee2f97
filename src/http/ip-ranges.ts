/** Addresses and CIDR ranges as one list that can be asked. IPv4-mapped IPv6 addresses count as IPv4. */
import { BlockList, isIP } from 'node:net';

/** Problems are told by index; the other entries are kept. */
export function ipRanges(entries: readonly string[], onProblem?: (index: number, message: string) => void): BlockList {
  const list = new BlockList();
  for (const [index, entry] of entries.entries()) {
    const [address = '', bits, ...rest] = entry.split('/');
    const plain = plainAddress(address);
    const family = isIP(plain);
    const most = family === 4 ? 32 : 128;
    if (family === 0 || rest.length > 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))) {
      onProblem?.(index, `${JSON.stringify(entry)} is neither an address nor a CIDR range`);
    } else if (bits === undefined) list.addAddress(plain, family === 4 ? 'ipv4' : 'ipv6');
    else list.addSubnet(plain, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

export function inRanges(list: BlockList, address: string): boolean {
  const plain = plainAddress(address);
  const family = isIP(plain);
  return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6');
}

/** Without a zone, and IPv4 where it is IPv4 mapped into IPv6. Other text is returned as it is. */
export function plainAddress(address: string): string {
  const zone = address.indexOf('%');
  const bare = zone < 0 ? address : address.slice(0, zone);
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (dotted !== undefined) return dotted;
  const hex = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(bare);
  if (hex === null) return bare;
  const [high, low] = [Number.parseInt(hex[1] ?? '', 16), Number.parseInt(hex[2] ?? '', 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}
