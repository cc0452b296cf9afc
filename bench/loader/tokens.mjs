// The token file of bench/loader.ts, for worker threads.
import { TokenFile } from '@ringwise/data/tokens';

export default ({ path, block }) => new TokenFile(path, { block, dtype: 'uint32' });
