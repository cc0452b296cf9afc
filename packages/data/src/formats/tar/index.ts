export { TarFile, type TarSample } from './tar-file.ts';
export { type TarSamplesOptions, type TarSource, tarSamples } from './tar-samples.ts';
