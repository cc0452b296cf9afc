export { type CsvBatch, type CsvColumns, CsvFile, type CsvOptions, type CsvSample } from './csv-file.ts';
