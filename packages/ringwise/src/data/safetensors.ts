export * from '@ringwise/data/safetensors';
