export { recordErrors } from './error-file.ts';
export { LaunchError, type LaunchErrorCode } from './errors.ts';
export { type SpawnOptions, spawn } from './spawn.ts';
