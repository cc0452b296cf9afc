export * from '@ringwise/tensor';
