export { StoreError, type StoreErrorCode } from './errors.ts';
export { FileStore, type FileStoreOptions } from './file-store.ts';
export type { Secret } from './handshake.ts';
export { MemoryStore } from './memory-store.ts';
export { PrefixStore } from './prefix-store.ts';
export type { Store, WaitOptions } from './store.ts';
export { type ServeStoreOptions, type StoreServer, serveStore } from './tcp-server.ts';
export { TcpStore, type TcpStoreOptions } from './tcp-store.ts';
export { serveStoreInWorker } from './worker-server.ts';
