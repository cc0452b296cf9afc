export * from '@ringwise/data/npy';
