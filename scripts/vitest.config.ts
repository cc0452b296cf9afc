import { project } from '../vitest.base.ts';

export default project('scripts', 300_000);
