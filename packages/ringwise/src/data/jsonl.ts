export * from '@ringwise/data/jsonl';
