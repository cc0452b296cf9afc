export { type IdxArray, readIdx, writeIdx } from './idx-file.ts';
export { loadMnist, type MnistSplit } from './mnist.ts';
