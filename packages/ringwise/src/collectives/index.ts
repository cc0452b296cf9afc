export * from '@ringwise/collectives';
