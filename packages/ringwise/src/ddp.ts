export * from '@ringwise/ddp';
