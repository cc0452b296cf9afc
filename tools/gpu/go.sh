#!/usr/bin/env bash
# Runs the tests and timings on the machine on which the archive of pack.mjs was unpacked. Writes log files, results.json
# and results.md into the folder RESULTS. Runs the parts that are named, in the order given; without names all parts, in
# the order below, in which the first ten minutes tell the most. Each part ends within its limit, so that `smoke`,
# `timings gpt2`, `tensor full`, `collectives`, `captured mixed`, `sanitizer` and `races` are calls of less than ten minutes. The
# limits of the commands of smoke, sanitizer and races add up to less than the limit of their part, so each of them runs.
#   bash ringwise-gpu/tools/gpu/go.sh RESULTS [PART … | PART+PART …]
# Parts joined by + run at once, which suits tests on a machine with many cores, and never timings.
# smoke        the ten most important facts, a line each with a limit of its own: versions; three C++ programs (kernels,
#              layers, libraries); rates; captured launches; NCCL and a killed rank; DDP; deadlines; a full device
# timings      our timings, and those of the same workloads in PyTorch if it is installed
# gpt2         a training step of GPT-2 (124M parameters), eager and captured; in PyTorch eager and with torch.compile
# tensor       the tests of CUDA tensors, and the kernel contract
# full         tests that fill the device, one after another; do not join this part to others
# collectives  the host backend and DDP with CUDA tensors; NCCL, all ranks on one GPU: contract suite, killed ranks
# captured     NCCL inside captured steps: DDP, verbs, ranks that record different steps, killed and late ranks
# mixed        examples/mixed-nccl: PyTorch, if installed with CUDA, and Node in one NCCL communicator on one GPU
# sanitizer    the C++ tests of the kernels under compute-sanitizer (memcheck, initcheck), with few rounds
# races        the same (synccheck, racecheck), with fewer rounds
# Without a GPU all tests run on the software device, and the timed workloads run once, at small sizes, without figures.
set -uo pipefail
parts=(smoke timings gpt2 tensor full collectives captured mixed sanitizer races)
usage="usage: go.sh RESULTS [PART … | PART+PART …], with the parts ${parts[*]}; PART+PART runs both at once"
results=$(mkdir -p "${1:?$usage}" && cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- "${parts[@]}"
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH=$root/bin:$PATH NO_COLOR=1 FORCE_COLOR=0
cd "$root" || exit 1
# The vendor's libraries are often installed as Python packages: find them there.
if [ -z "${RINGWISE_NVIDIA_DIR:-}" ]; then
  found=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2> /dev/null) && export RINGWISE_NVIDIA_DIR=$found
fi
node tools/gpu/device.mjs | tee "$results/device.json"
devices=$(node -p "require('$results/device.json').devices.length")
software=$root/native/build/Release/libsoftware_cuda.so
[ "${RINGWISE_LIBCUDA:-}" != "$software" ] || devices=0 # a call of together() has set it
if [ "$devices" -gt 0 ]; then export RINGWISE_TEST_GPU=1
else export RINGWISE_LIBCUDA=$software RINGWISE_LIBNCCL=$software; fi

status=0
ends=0
begin() { ends=$((SECONDS + $2)) && echo "== $1, at most $2 s"; }
# within SECONDS COMMAND…: runs a command for at most so many seconds, and not beyond the limit of its part.
within() {
  local most=$1 left=$((ends - SECONDS))
  shift
  if [ "$left" -lt 1 ]; then echo "no time left for: $*"; return 124; fi
  timeout --kill-after=5 "$((most < left ? most : left))" "$@"
}
# tests SECONDS NAME FOLDER FILE…: runs the tests in FOLDER whose paths contain one of FILE; NAME names the results.
tests() {
  local most=$1 name=$2 folder=$3
  shift 3
  (cd "$folder" && within "$most" node "$root/node_modules/vitest/vitest.mjs" run "$@" \
    --testTimeout=120000 --reporter=verbose --reporter=json --outputFile.json="$results/tests-$name.json") 2>&1 | tee "$results/tests-$name.log" || status=1
}

# fact SECONDS NAME COMMAND…: runs a command, and prints whether it succeeded, how long it took, and its last line.
fact() {
  local most=$1 name=$2 from=$SECONDS output status_of word
  shift 2
  output=$(within "$most" "$@" 2>> "$results/smoke-errors.log")
  status_of=$?
  case $status_of in
    0) word=good ;;
    124 | 137) word="did not end" ;;
    *) word=FAILED ;;
  esac
  [ $status_of -eq 0 ] || status=1
  echo "$word: $name ($((SECONDS - from)) s): $(tail -n 1 <<< "$output")" | tee -a "$results/smoke.log"
}

smoke() {
  begin smoke 580
  : > "$results/smoke.log"
  : > "$results/smoke-errors.log"
  local small=() name
  [ "$devices" -gt 0 ] || small=(--small)
  fact 20 versions node tools/gpu/device.mjs --line
  for name in tensor_cuda_test tensor_cuda_nn_test tensor_cuda_library_test; do
    RINGWISE_ROUNDS=600 fact 60 "$name" "native/build/test/$name" # the part tensor runs up to 3,000
  done
  for name in rates launches nccl training queued full; do
    fact 60 "$name" node --import ./packages/testing/loader/register.mjs tools/gpu/smoke/facts.mjs "$name" "${small[@]}"
  done
}

tensor() {
  begin tensor 330
  : > "$results/cpp.log"
  for program in native/build/test/tensor_cuda*_test; do
    [ -x "$program" ] || continue
    (echo "$program" && within 90 "$program") 2>&1 | tee -a "$results/cpp.log" || status=1
  done
  tests 200 tensor packages/tensor test/isolated test/processes/device test/full/devices --exclude '**/lost-memory*' \
    -t '^(?!.*too little memory)'
}

full() {
  begin full 120
  tests 60 full-lost packages/tensor device/lost-memory
  tests 60 full-cuda packages/tensor device/cuda.test -t 'too little memory'
}

# sanitize PART TOOL:ROUNDS…: runs the C++ tests of our kernels under tools of the vendor's compute-sanitizer, if it is
# there, with so many rounds of random inputs.
sanitize() {
  local part=$1 command each tool program
  shift
  begin "$part" 590
  : > "$results/$part.log"
  command=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  if [ "$devices" -eq 0 ] || [ ! -x "$command" ]; then echo "no compute-sanitizer, or no GPU" | tee "$results/$part.log"; return 0; fi
  for each in "$@"; do
    for program in tensor_cuda_test tensor_cuda_nn_test tensor_cuda_order_test; do
      tool=${each%:*}
      echo "$tool $program"
      RINGWISE_ROUNDS=${each#*:} within 90 "$command" --tool "$tool" --error-exitcode 9 "native/build/test/$program" || {
        echo "$tool $program: exit $?"
        status=1
      }
    done
  done > "$results/$part.log" 2>&1
  cat "$results/$part.log"
}

# Looks for accesses outside of memory, and for reads of memory that was never written.
sanitizer() { sanitize sanitizer memcheck:200 initcheck:200; }

# Looks for missed barriers, and for races in shared memory. Under racecheck a round takes hundreds of times as long, so
# it runs fewer rounds, still enough to reach every kernel.
races() { sanitize races synccheck:200 racecheck:60; }

collectives() {
  begin collectives 560
  tests 280 ddp packages/ringwise device-ddp device-elastic device-snapshot device-collectives
  tests 560 nccl packages/collectives full/devices/nccl processes/join-nccl
}

captured() {
  begin captured 280
  tests 280 captured packages/ringwise device-captured device-sync-batch-norm
}

mixed() {
  begin mixed 150
  tests 150 mixed examples full/examples/mixed-nccl
}

timings() {
  begin timings 220
  if [ "$devices" -gt 0 ]; then
    within 110 node tools/gpu/bench.mjs > "$results/ringwise.json" || status=1
    within 30 node tools/gpu/bench-ddp.mjs > "$results/ringwise-ddp.json" || status=1
    within 220 python3 tools/gpu/torch_bench.py > "$results/torch.json" || echo '[]' > "$results/torch.json"
  else
    within 200 node tools/gpu/bench.mjs --small > "$results/small.json" || status=1
    within 60 node tools/gpu/bench-ddp.mjs --small > "$results/small-ddp.json" || status=1
  fi
}

gpt2() {
  begin gpt2 200
  if [ "$devices" -gt 0 ]; then
    within 60 node --import tsx tools/gpu/bench-gpt2.mjs > "$results/ringwise-gpt2.json" || status=1
    within 140 python3 tools/gpu/torch_gpt2.py > "$results/torch-gpt2.json" || echo '[]' > "$results/torch-gpt2.json"
  else
    within 60 node --import tsx tools/gpu/bench-gpt2.mjs --small > "$results/small-gpt2.json" || status=1
  fi
}

# together PART…: runs parts at once. Prints what each of them says when it has ended.
together() {
  local names=("$@") processes=() i
  for i in "${names[@]}"; do
    bash "${BASH_SOURCE[0]}" "$results" "$i" > "$results/$i.out" 2>&1 &
    processes+=($!)
  done
  for i in "${!names[@]}"; do
    wait "${processes[$i]}" || status=1
    cat "$results/${names[$i]}.out"
  done
}

for part in "$@"; do
  for name in ${part//+/ }; do
    case " ${parts[*]} " in
      *" $name "*) ;;
      *) echo "go.sh: there is no part '$name'. $usage" && exit 2 ;;
    esac
  done
done
for part in "$@"; do
  case $part in
    # Names of parts have no spaces, so that the shell may split here.
    *+*) together ${part//+/ } ;;
    *) "$part" ;;
  esac
done
node tools/gpu/report.mjs "$results"
exit $status
