#!/usr/bin/env bash
# Runs on the machine that the archive of pack.mjs was unpacked on: all device tests, our timings, and the same workloads
# in PyTorch where it is installed. Writes log files, results.json and results.md into the folder RESULTS.
#   bash ringwise-gpu/tools/gpu/go.sh RESULTS
# Without a GPU the tests run on the software device, and the timed workloads once, at small sizes and without figures.
set -uo pipefail
results=$(mkdir -p "${1:?usage: go.sh RESULTS}" && cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=$root/bin:$PATH
cd "$root" || exit 1
# The vendor's libraries often come as Python packages.
if [ -z "${RINGWISE_NVIDIA_DIR:-}" ]; then
  found=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2> /dev/null) && export RINGWISE_NVIDIA_DIR=$found
fi
addon='require(`./native/npm/${process.platform}-${process.arch}/tensor.node`)'
node -e "const cuda = $addon; console.log(JSON.stringify({ ...cuda.cudaInfo(), libraries: cuda.cudaLibraries() }, null, 2))" \
  | tee "$results/device.json"
devices=$(node -p "$addon.cudaInfo().devices.length")
if [ "$devices" -gt 0 ]; then export RINGWISE_TEST_GPU=1
else export RINGWISE_LIBCUDA=$root/native/build/Release/libsoftware_cuda.so; fi

status=0
: > "$results/cpp.log"
for program in native/build-tests/test/tensor_cuda*_test; do
  [ -x "$program" ] || continue
  (echo "$program" && timeout 120 "$program") 2>&1 | tee -a "$results/cpp.log" || status=1
done
# Steps outside of memory, races and missed barriers in our kernels: the vendor's tool, where CUDA is installed.
: > "$results/sanitizer.log"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ "$devices" -gt 0 ] && [ -x "$sanitizer" ]; then
  for tool in memcheck racecheck synccheck; do
    for program in native/build-tests/test/tensor_cuda{,_nn}_test; do
      [ -x "$program" ] || continue
      echo "$tool $program"
      timeout 300 "$sanitizer" --tool "$tool" --error-exitcode 9 "$program" || { echo "$tool: exit $?"; status=1; }
    done
  done > "$results/sanitizer.log" 2>&1
  cat "$results/sanitizer.log"
fi
(cd packages/tensor && timeout 500 node "$root/node_modules/vitest/vitest.mjs" run test/cuda test/cublas test/cudnn test/compile test/streams test/pinned test/handle test/safetensors-device \
  --reporter=default --reporter=json --outputFile.json="$results/tests.json") 2>&1 | tee "$results/tests.log" || status=1
if [ "$devices" -gt 0 ]; then
  timeout 200 node tools/gpu/bench.mjs > "$results/ringwise.json" || status=1
  timeout 240 python3 tools/gpu/torch_bench.py > "$results/torch.json" || echo '[]' > "$results/torch.json"
else
  timeout 200 node tools/gpu/bench.mjs --small > "$results/small.json" || status=1
fi
node tools/gpu/report.mjs "$results"
exit $status
