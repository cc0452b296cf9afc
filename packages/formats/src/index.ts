export { check, FormatError } from './errors.ts';
export { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from './half.ts';
export { JsonProblem, parseJson } from './json.ts';
export { readFully } from './read-fully.ts';
export { excerpt, quoted } from './text.ts';
export { type Content, checkTotal, encodeArchive, type Member, readDirectory, readMember } from './zip.ts';
