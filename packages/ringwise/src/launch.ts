export * from '@ringwise/launch';
