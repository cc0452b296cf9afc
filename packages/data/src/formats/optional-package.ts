import { noPeer } from '../errors.ts';

/**
 * The module that `load` imports: a package that only those install who read such files. Throws ERR_DATA_PEER, which says
 * what to install, where it is missing or cannot be loaded.
 */
export async function importPeer<M>(reader: string, name: string, load: () => Promise<M>): Promise<M> {
  try {
    return await load();
  } catch (cause) {
    throw noPeer(reader, name, cause);
  }
}
