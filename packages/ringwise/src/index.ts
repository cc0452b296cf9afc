// Exports each package of the project under its own name. The other files here export one entry of one package each, as
// `ringwise/NAME`: package managers that are strict let a program import only what its package.json names.
export * as collectives from '@ringwise/collectives';
export * as data from '@ringwise/data';
export * as ddp from '@ringwise/ddp';
export * as elastic from '@ringwise/elastic';
export * as formats from '@ringwise/formats';
export * as launch from '@ringwise/launch';
export * as store from '@ringwise/store';
export * as tensor from '@ringwise/tensor';
