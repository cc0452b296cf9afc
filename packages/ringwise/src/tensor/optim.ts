export * from '@ringwise/tensor/optim';
