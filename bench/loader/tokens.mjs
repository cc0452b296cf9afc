// Opens the token file of bench/loader.ts. Worker threads load this module.
import { TokenFile } from '@ringwise/data/tokens';

export default ({ path, block, dtype = 'uint32' }) => new TokenFile(path, { block, dtype });
