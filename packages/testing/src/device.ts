// Chooses where tests of CUDA run. With RINGWISE_TEST_GPU=1 it is a GPU that all ranks of a test share; otherwise it is
// the software device (native/test/software_gpu), if that has been built, with one device for each rank.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const built = (name: string): string =>
  fileURLToPath(new URL(`../../../native/build/Release/${name}`, import.meta.url));
const softwareDriver = built('libsoftware_cuda.so');

/** Path of the addon that gives tests device memory (native/test/software_gpu/memory_addon.cc). */
export const deviceMemoryAddon = built('device_memory.node');

export const isTestGpu = process.env.RINGWISE_TEST_GPU === '1';
export const hasTestDevice = isTestGpu || existsSync(softwareDriver);

/** Returns the number of a rank's device. */
export const testDeviceOf = (rank: number): number => (isTestGpu ? 0 : rank);

/** Gives this process the device of the tests and its NCCL. Call it before anything opens the driver. */
export function useTestDevice(): void {
  if (!isTestGpu) {
    process.env.RINGWISE_LIBCUDA = softwareDriver;
    process.env.RINGWISE_LIBNCCL = softwareDriver;
    return;
  }
  // NCCL refuses two ranks of one host on one device. With a host name for each rank, they connect by sockets.
  process.env.NCCL_HOSTID = `ringwise-test-${process.pid}`;
  process.env.NCCL_SOCKET_IFNAME = 'lo';
  process.env.NCCL_IB_DISABLE = '1';
  // Ranks take turns on the device, and the ring needs few turns.
  process.env.NCCL_ALGO = 'Ring';
  process.env.NCCL_PROTO = 'Simple';
}
