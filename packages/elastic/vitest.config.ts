import { testsOf } from '../../vitest.base.ts';

export default testsOf('packages/elastic');
