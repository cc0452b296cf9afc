export * from '@ringwise/data/parquet';
