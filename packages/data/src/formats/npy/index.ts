export { NpyFile } from './npy-file.ts';
