export * from '@ringwise/tensor/nn';
