import { testedFolders, testsOf } from './vitest.base.ts';

export default testsOf(...testedFolders);
