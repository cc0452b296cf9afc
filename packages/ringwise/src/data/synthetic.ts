export * from '@ringwise/data/synthetic';
