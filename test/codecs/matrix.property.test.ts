/** Every law over every dialect and every pair of dialects. */
import { DIALECTS, UPSTREAMS } from '../support/dialects.ts';
import {
  lawAlwaysSealed,
  lawCutsDoNotMatter,
  lawInterleavingDoesNotMatter,
  lawNoSuccessFromFailure,
  lawOpaqueMeansOpaque,
  lawRoundTrip,
  lawWholeIsFold,
} from '../support/laws.ts';
import { lawSameDialectIsLossless, lawWiringDoesNotMatter } from '../support/pipeline-laws.ts';

for (const upstream of UPSTREAMS) {
  lawCutsDoNotMatter(upstream);
  lawRoundTrip(upstream);
  for (const client of DIALECTS) {
    lawAlwaysSealed(upstream, client);
    lawNoSuccessFromFailure(upstream, client);
    lawWholeIsFold(upstream, client);
    lawOpaqueMeansOpaque(upstream, client);
    lawInterleavingDoesNotMatter(upstream, client);
    lawWiringDoesNotMatter(upstream, client);
  }
}

for (const dialect of DIALECTS) lawSameDialectIsLossless(dialect);
