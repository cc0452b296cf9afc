// Reads what nvcc says about kernels: the report of its assembler (ptxas -v), and PTX.

/**
 * Returns a map from the name of each kernel to its registers per thread, bytes spilled per thread (stores), bytes of
 * the stack, and bytes of static shared memory per block, from what `nvcc -Xptxas -v` prints for one architecture.
 */
export function usageOf(report) {
  const found = new Map();
  let name;
  let now = {};
  for (const line of report.split('\n')) {
    const entry = /Compiling entry function '(\w+)'/.exec(line);
    if (entry) {
      name = entry[1];
      now = { registers: 0, spilled: 0, stack: 0, shared: 0 };
      found.set(name, now);
    }
    if (name === undefined) continue;
    const spills = /(\d+) bytes stack frame, (\d+) bytes spill stores/.exec(line);
    if (spills) {
      now.stack = Number(spills[1]);
      now.spilled = Number(spills[2]);
    }
    const used = /Used (\d+) registers/.exec(line);
    if (!used) continue;
    now.registers = Number(used[1]);
    now.shared = Number(/(\d+) bytes smem/.exec(line)?.[1] ?? 0);
    name = undefined; // the report of another function may follow
  }
  return found;
}

/** Returns a map from the name of each kernel in PTX to the most threads of its blocks. */
export function threadsOf(ptx) {
  const found = new Map();
  for (const [, name, most] of ptx.matchAll(/\.entry (\w+)\([^)]*\)\s*\.maxntid (\d+)/g))
    found.set(name, Number(most));
  return found;
}

/** Returns the blocks that fit on a multiprocessor of sm_90 together. */
export function blocksPerMultiprocessor({ threads, registers, shared }) {
  const warps = Math.ceil(threads / 32);
  // A warp gets registers in units of 256, a block 1 KiB of shared memory beside its own.
  const byRegisters = Math.floor(65536 / (Math.ceil((registers * 32) / 256) * 256) / warps);
  const byShared = Math.floor((228 * 1024) / (shared + 1024));
  return Math.min(byRegisters, byShared, Math.floor(64 / warps), 32);
}
