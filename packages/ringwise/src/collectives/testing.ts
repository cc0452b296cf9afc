export * from '@ringwise/collectives/testing';
