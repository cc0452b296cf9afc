// Prints as JSON what this machine has: its devices, and for each of the vendor's libraries where it was
// found, or why not.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;
const tensor = require(`../../native/npm/tensor-${platform}/tensor.node`);
const { nccl } = require(`../../native/npm/collectives-${platform}/coll.node`);
const { library: path, version, reason } = nccl.about();
const libraries = [...tensor.cudaLibraries(), { name: 'nccl', path, version, reason }];
process.stdout.write(`${JSON.stringify({ ...tensor.cudaInfo(), libraries }, null, 2)}\n`);
