export * from '@ringwise/store';
