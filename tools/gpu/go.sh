#!/usr/bin/env bash
# Runs on the machine that the archive of pack.mjs was unpacked on: all device tests, our timings, and the same workloads
# in PyTorch where it is installed. Writes log files, results.json and results.md into the folder RESULTS.
#   bash ringwise-gpu/tools/gpu/go.sh RESULTS
# Without a GPU the device tests run on the software device, and timings are left out.
set -uo pipefail
results=$(mkdir -p "${1:?usage: go.sh RESULTS}" && cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=$root/bin:$PATH
cd "$root" || exit 1
cuda='require(`./native/npm/${process.platform}-${process.arch}/tensor.node`).cudaInfo()'
node -e "console.log(JSON.stringify($cuda, null, 2))" | tee "$results/device.json"
devices=$(node -p "$cuda.devices.length")
[ "$devices" -gt 0 ] && export RINGWISE_TEST_GPU=1

status=0
if [ -x native/build-tests/test/tensor_cuda_test ]; then
  timeout 300 native/build-tests/test/tensor_cuda_test 2>&1 | tee "$results/cpp.log" || status=1
fi
(cd packages/tensor && timeout 400 node "$root/node_modules/vitest/vitest.mjs" run test/cuda.test.ts test/cuda-kernels.test.ts \
  --reporter=default --reporter=json --outputFile.json="$results/tests.json") 2>&1 | tee "$results/tests.log" || status=1
if [ "$devices" -gt 0 ]; then
  timeout 120 node tools/gpu/bench.mjs > "$results/ringwise.json" || status=1
  timeout 240 python3 tools/gpu/torch_bench.py > "$results/torch.json" || echo '[]' > "$results/torch.json"
fi
node tools/gpu/report.mjs "$results"
exit $status
