export { SafetensorsFile } from './safetensors-file.ts';
