export * from '@ringwise/data/idx';
