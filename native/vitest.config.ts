import { project } from '../vitest.base.ts';

export default project('native', 1_800_000);
