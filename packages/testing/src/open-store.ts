// Connects a rank with the store of its job, as a program of the rank would.
import { TcpStore } from '@ringwise/store';

/** Connects with the store that this process's environment names. The caller closes it. */
export async function openStore(): Promise<TcpStore> {
  const { MASTER_ADDR: host, MASTER_PORT: port, RINGWISE_SECRET: secret } = process.env;
  return await TcpStore.connect({ host: host!, port: Number(port), secret: secret! });
}
