import { project } from '../vitest.base.ts';

export default project('native', 900_000);
