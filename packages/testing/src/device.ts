// Where tests of CUDA run: on a GPU where RINGWISE_TEST_GPU=1 says that there is one, which all ranks of a test share;
// otherwise on the software device (native/test/software_gpu), where that has been built, with a device for each rank.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const built = (name: string): string =>
  fileURLToPath(new URL(`../../../native/build/Release/${name}`, import.meta.url));
const softwareDriver = built('libsoftware_cuda.so');

/** Memory of devices for tests in JavaScript: native/test/software_gpu/memory_addon.cc. */
export const deviceMemoryAddon = built('device_memory.node');

export const isTestGpu = process.env.RINGWISE_TEST_GPU === '1';
export const hasTestDevice = isTestGpu || existsSync(softwareDriver);

/** The number of a rank's device. */
export const testDeviceOf = (rank: number): number => (isTestGpu ? 0 : rank);

/** Gives this process the device of the tests, and its NCCL. To be called before anything opens the driver. */
export function useTestDevice(): void {
  if (!isTestGpu) {
    process.env.RINGWISE_LIBCUDA = softwareDriver;
    process.env.RINGWISE_LIBNCCL = softwareDriver;
    return;
  }
  // NCCL refuses two ranks of a host on one device. With names of their own they are hosts, which meet by sockets.
  process.env.NCCL_HOSTID = `ringwise-test-${process.pid}`;
  process.env.NCCL_SOCKET_IFNAME = 'lo';
  process.env.NCCL_IB_DISABLE = '1';
  // Ranks take turns on the device: what needs few turns is fast.
  process.env.NCCL_ALGO = 'Ring';
  process.env.NCCL_PROTO = 'Simple';
}
