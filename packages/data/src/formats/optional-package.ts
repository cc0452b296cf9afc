import { noPeer } from '../errors.ts';

/**
 * Resolves with the module that `load` imports: an optional package that is needed only for this file format.
 * Rejects with ERR_DATA_PEER, which names the package to install, if it is missing or cannot be loaded.
 */
export async function importPeer<M>(reader: string, name: string, load: () => Promise<M>): Promise<M> {
  try {
    return await load();
  } catch (cause) {
    throw noPeer(reader, name, cause);
  }
}
