export { type IdxArray, type ReadIdxOptions, readIdx, writeIdx } from './idx-file.ts';
export { type LoadMnistOptions, loadMnist, type MnistSplit } from './mnist.ts';
