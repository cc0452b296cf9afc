// Measures the collectives of Gloo itself (the library that torch.distributed uses on CPUs), over TCP, by the rule of
// harness.h.
//   g++ -O3 -march=native -std=c++17 -o gloo gloo.cc -lgloo -pthread
//   ./gloo --ranks 2 --store DIR --verb all-reduce                       forks all ranks, over the loopback interface
//   ./gloo --ranks 2 --rank 1 --store DIR --iface eth0 --verb ...         one rank of a job on several hosts
// DIR is an empty folder that all ranks can read and write.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "harness.h"

namespace {

using Reduce = void (*)(void*, const void*, const void*, size_t);

std::shared_ptr<gloo::rendezvous::Context> context;
// Gloo has no reduce-scatter with a separate output: this one leaves the result where the input was.
std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> reduce_scatter;

void maximum(bench*, double* values, size_t n) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values, n);
  options.setReduceFunction(static_cast<Reduce>(&gloo::max<double>));
  gloo::allreduce(options);
}

void prepare(bench* b) {
  if (b->verb != REDUCE_SCATTER) return;
  std::vector<int> counts(b->ranks, static_cast<int>(b->count));
  reduce_scatter = std::make_unique<gloo::ReduceScatterHalvingDoubling<float>>(
      context, std::vector<float*>{b->in}, static_cast<int>(b->count) * b->ranks, counts);
}

void send_recv(bench* b) {
  auto from = context->createUnboundBuffer(b->in, b->count * sizeof(float));
  auto to = context->createUnboundBuffer(b->out, b->count * sizeof(float));
  to->recv(previous_rank(b), 1);
  from->send(next_rank(b), 1);
  from->waitSend();
  to->waitRecv();
}

void call(bench* b) {
  const size_t n = b->count, all = b->count * b->ranks;
  const auto sum = static_cast<Reduce>(&gloo::sum<float>);
  switch (b->verb) {
    case ALL_REDUCE: {
      gloo::AllreduceOptions options(context);
      options.setOutput(b->out, n);
      options.setReduceFunction(sum);
      return gloo::allreduce(options);
    }
    case REDUCE: {
      gloo::ReduceOptions options(context);
      options.setOutput(b->out, n);
      options.setRoot(0);
      options.setReduceFunction(sum);
      return gloo::reduce(options);
    }
    case BROADCAST: {
      gloo::BroadcastOptions options(context);
      options.setOutput(b->out, n);
      options.setRoot(0);
      return gloo::broadcast(options);
    }
    case ALL_GATHER: {
      gloo::AllgatherOptions options(context);
      options.setInput(b->in, n);
      options.setOutput(b->out, all);
      return gloo::allgather(options);
    }
    case REDUCE_SCATTER:
      reduce_scatter->run();
      memcpy(b->out, b->in, n * sizeof(float));
      return;
    case GATHER: {
      gloo::GatherOptions options(context);
      options.setInput(b->in, n);
      if (b->rank == 0) options.setOutput(b->out, all);
      options.setRoot(0);
      return gloo::gather(options);
    }
    case SCATTER: {
      gloo::ScatterOptions options(context);
      std::vector<float*> parts;
      for (int r = 0; b->rank == 0 && r < b->ranks; r++) parts.push_back(b->in + r * n);
      if (b->rank == 0) options.setInputs(parts, n);
      options.setOutput(b->out, n);
      options.setRoot(0);
      return gloo::scatter(options);
    }
    case ALL_TO_ALL: {
      gloo::AlltoallOptions options(context);
      options.setInput(b->in, all);
      options.setOutput(b->out, all);
      return gloo::alltoall(options);
    }
    case SEND_RECV: return send_recv(b);
    default: {
      gloo::BarrierOptions options(context);
      return gloo::barrier(options);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bench b = parse_bench("gloo", argc, argv);
  std::string store, interface = "lo";
  int rank = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--ranks") b.ranks = atoi(argv[i + 1]);
    if (flag == "--rank") rank = atoi(argv[i + 1]);
    if (flag == "--store") store = argv[i + 1];
    if (flag == "--iface") interface = argv[i + 1];
  }
  std::vector<pid_t> children;
  b.rank = rank >= 0 ? rank : 0;
  for (int r = 1; rank < 0 && r < b.ranks; r++) {
    const pid_t child = fork();
    if (child == 0) {
      b.rank = r;
      children.clear();
      break;
    }
    children.push_back(child);
  }
  gloo::transport::tcp::attr attributes;
  attributes.iface = interface;
  gloo::rendezvous::FileStore files(store);
  context = std::make_shared<gloo::rendezvous::Context>(b.rank, b.ranks);
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(files, device);
  b.call = call;
  b.maximum = maximum;
  run_sizes(&b, prepare);
  double nothing = 0;
  maximum(&b, &nothing, 1);
  int bad = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    bad |= status;
  }
  // Skip destructors: that of Gloo's device may wait for peers that have exited.
  fflush(stdout);
  _exit(bad != 0);
}
