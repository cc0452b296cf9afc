export * from '@ringwise/formats';
