export { recordErrors } from './error-file.ts';
export { LaunchError, type LaunchErrorCode } from './errors.ts';
export { type Metrics, reportMetrics, type StepTiming } from './live/report-metrics.ts';
export { type SpawnOptions, type StartedRanks, type StartOptions, spawn, startProcesses } from './spawn.ts';
