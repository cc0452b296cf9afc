export * from '@ringwise/store/testing';
