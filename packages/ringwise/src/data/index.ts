export * from '@ringwise/data';
