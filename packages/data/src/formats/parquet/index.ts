export { ParquetFile, type ParquetOptions } from './parquet-file.ts';
