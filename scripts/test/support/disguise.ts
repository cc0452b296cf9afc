// Lets processes take themselves for processes on another platform.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What `process` tells. `glibc` is its version; null where there is none. */
export interface Disguise {
  readonly platform: string;
  readonly arch: string;
  readonly glibc: string | null;
}

/**
 * Writes a module into a folder, and returns the variables that make every Node.js process load it first: it tells a
 * program the platform, processor and C library of the disguise.
 */
export function disguised(folder: string, { platform, arch, glibc }: Disguise): Record<string, string> {
  const path = join(folder, 'disguise.cjs');
  writeFileSync(
    path,
    `Object.defineProperty(process, 'platform', { value: '${platform}' });
Object.defineProperty(process, 'arch', { value: '${arch}' });
const getReport = process.report.getReport.bind(process.report);
process.report.getReport = (error) => {
  const report = getReport(error);
  report.header.glibcVersionRuntime = ${glibc === null ? 'undefined' : `'${glibc}'`};
  return report;
};
`,
  );
  return { NODE_OPTIONS: `--require ${path}` };
}
