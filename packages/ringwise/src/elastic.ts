export * from '@ringwise/elastic';
