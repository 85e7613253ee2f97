/** The version of the messages protocol as clouds read it in the body. */
import { DEFAULT_VERSION } from '../../codecs/messages/index.ts';

/**
 * Each cloud has a name of its own for the first version; later ones are dates everywhere, and decide what an answer looks like.
 */
export function hostedVersion(version: string | undefined, first: string): string {
  return version === undefined || version === DEFAULT_VERSION ? first : version;
}
