export { TarFile, type TarSample } from './tar-file.ts';
export { type TarSource, tarSamples } from './tar-samples.ts';
