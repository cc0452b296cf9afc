// A vitest reporter that sends the parent process which test files failed. scripts/vitest.mjs uses it.
import { seedOfFile } from '../vitest.repeat.ts';

export default class FailedFiles {
  onTestRunEnd(modules, unhandledErrors) {
    const files = modules
      .filter((module) => module.state() === 'failed')
      .map((module) => ({ project: module.project.name, path: module.moduleId, seed: seedOfFile(module) }));
    process.send({ files, unhandledErrors: unhandledErrors.length });
  }
}
