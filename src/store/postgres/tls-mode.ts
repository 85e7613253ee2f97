/**
 * What `sslmode` in the address of the database means: the same as everywhere else, said to a driver whose own reading differs. A
 * mode that may go on without TLS in silence, and one that nobody knows, are refused.
 */
import { StoreError } from '../store-error.ts';

/**
 * - `disable`, or no mode: no TLS
 * - `require`: TLS; whose certificate it is nobody asks, unless `sslrootcert` is given, and then as `verify-ca`
 * - `verify-ca`: the certificate comes from an authority in `sslrootcert`
 * - `verify-full`: it is also that of the host; without `sslrootcert` the authorities of the system count
 */
const MODES: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'];

/** The address as the driver must read it. Throws `StoreError` `bad_url`. */
export function withTlsMode(url: string): string {
  const query = url.indexOf('?');
  const parameters = new URLSearchParams(query < 0 ? '' : url.slice(query));
  const mode = parameters.get('sslmode');
  if (mode === null) {
    const idle = ['sslrootcert', 'sslcert', 'sslkey'].find((name) => parameters.has(name));
    if (idle !== undefined) throw bad(`${idle} needs an sslmode`);
    return url;
  }
  if (mode === 'allow' || mode === 'prefer') throw bad(`sslmode ${mode} may go on without TLS`);
  if (!MODES.includes(mode)) throw bad('the sslmode is not known');
  if (mode === 'verify-ca' && !parameters.has('sslrootcert')) throw bad('sslmode verify-ca needs an sslrootcert');
  return parameters.has('uselibpqcompat') ? url : `${url}&uselibpqcompat=true`;
}

function bad(what: string): StoreError {
  return new StoreError('bad_url', `the address of the database cannot be used: ${what}: say one of ${MODES.join(', ')}`);
}
