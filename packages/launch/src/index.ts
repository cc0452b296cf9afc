export { LaunchError, type LaunchErrorCode } from './errors.ts';
export { type Metrics, reportMetrics, type StepTiming } from './monitor/report-metrics.ts';
export { recordErrors } from './report/error-file.ts';
export {
  type SpawnOptions,
  type StartedRanks,
  type StartOptions,
  spawn,
  startProcesses,
} from './spawn/spawn.ts';
