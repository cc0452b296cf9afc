// Every rank loads this module before the user's script (node --import). Worker threads, and processes that the script
// forks with the same flags, load it too; there the variables of the launcher are absent, so it does nothing.

import { installMetrics, METRICS_FD } from '../monitor/rank-metrics.ts';
import { installProgress, PROGRESS } from '../monitor/rank-progress.ts';
import { crashSymbol } from '../report/crash-words.ts';
import { recordErrors } from '../report/error-file.ts';
import { installLastWords, LAST_WORDS_FD } from '../report/last-words.ts';
import { followLauncher, LAUNCHER_LINE_FD } from './launcher-line.ts';
import { WATCHED_PARENT, watchParent } from './parent-watch.ts';

const fd = process.env[LAST_WORDS_FD];
if (fd) {
  delete process.env[LAST_WORDS_FD];
  installLastWords(Number(fd));
  Object.assign(globalThis, { [crashSymbol]: Number(fd) });
  recordErrors();
}

const parent = process.env[WATCHED_PARENT];
if (parent) {
  delete process.env[WATCHED_PARENT];
  watchParent(Number(parent));
}

const lineFd = process.env[LAUNCHER_LINE_FD];
if (lineFd) {
  delete process.env[LAUNCHER_LINE_FD];
  followLauncher(Number(lineFd));
}

let sendProgress: ((text: string) => void) | null = null;
const metricsFd = process.env[METRICS_FD];
if (metricsFd) {
  delete process.env[METRICS_FD];
  sendProgress = installMetrics(Number(metricsFd));
}

const progress = process.env[PROGRESS];
if (progress) {
  delete process.env[PROGRESS];
  installProgress(progress === 'live' ? sendProgress : null);
}
