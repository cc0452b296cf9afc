// What this machine has, as JSON: devices, and the vendor's libraries with where they were found or why not.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const addon = (name) => require(`../../native/npm/${process.platform}-${process.arch}/${name}.node`);
const [tensor, { nccl }] = [addon('tensor'), addon('coll')];
const { library: path, version, reason } = nccl.about();
const libraries = [...tensor.cudaLibraries(), { name: 'nccl', path, version, reason }];
process.stdout.write(`${JSON.stringify({ ...tensor.cudaInfo(), libraries }, null, 2)}\n`);
