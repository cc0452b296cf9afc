// Exports each package of the project under its own name.
export * as collectives from '@ringwise/collectives';
export * as data from '@ringwise/data';
export * as ddp from '@ringwise/ddp';
export * as launch from '@ringwise/launch';
export * as store from '@ringwise/store';
export * as tensor from '@ringwise/tensor';
