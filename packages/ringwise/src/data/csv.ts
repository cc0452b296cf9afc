export * from '@ringwise/data/csv';
