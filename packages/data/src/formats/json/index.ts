export { JsonLinesFile, jsonLines } from './json-lines.ts';
