// Prints as JSON what this machine has: its devices, and for each of the vendor's libraries where it was
// found, or why not. --line: in one line of text.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;
const tensor = require(`../../native/npm/tensor-${platform}/tensor.node`);
const { nccl } = require(`../../native/npm/collectives-${platform}/coll.node`);
const { library: path, version, reason } = nccl.about();
const libraries = [...tensor.cudaLibraries(), { name: 'nccl', path, version, reason }];
const info = tensor.cudaInfo();
if (process.argv.includes('--line')) {
  const devices = info.devices.map(({ name, computeCapability }) => `${name} (${computeCapability})`);
  const found = libraries.map((each) => `${each.name} ${each.version || 'missing'}`);
  process.stdout.write(
    `${devices.join(', ') || info.reason}; driver CUDA ${info.driverVersion}, kernels CUDA ${info.kernelsVersion}; ${found.join(', ')}\n`,
  );
} else process.stdout.write(`${JSON.stringify({ ...info, libraries }, null, 2)}\n`);
