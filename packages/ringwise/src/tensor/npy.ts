export * from '@ringwise/tensor/npy';
