export * from '@ringwise/data/tar';
