export { TokenFile, type TokenFileOptions, type TokenWindows } from './token-file.ts';
