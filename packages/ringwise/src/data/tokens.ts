export * from '@ringwise/data/tokens';
