export * from '@ringwise/tensor/safetensors';
