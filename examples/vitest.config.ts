import { project } from '../vitest.base.ts';

export default project('examples', 120_000);
