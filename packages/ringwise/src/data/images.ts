export * from '@ringwise/data/images';
