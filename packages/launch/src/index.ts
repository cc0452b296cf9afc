export { recordErrors } from './error-file.ts';
export { LaunchError, type LaunchErrorCode } from './errors.ts';
export { type SpawnOptions, type StartedRanks, type StartOptions, spawn, startProcesses } from './spawn.ts';
