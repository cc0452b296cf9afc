import { testedFolders } from './scripts/parts.mjs';
import { root, testsOf } from './vitest.base.ts';

export default testsOf(...testedFolders(root));
