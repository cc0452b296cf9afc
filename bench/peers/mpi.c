// Measures the collectives of an MPI library by the rule of harness.h.
//   mpicc.openmpi -O3 -march=native -o mpi mpi.c && mpirun.openmpi -np 2 ./mpi --verb all-reduce
#include <mpi.h>

#include "harness.h"

static void maximum(struct bench* b, double* values, size_t n) {
  (void)b;
  MPI_Allreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void call(struct bench* b) {
  int n = (int)b->count;
  switch (b->verb) {
    case ALL_REDUCE: MPI_Allreduce(MPI_IN_PLACE, b->out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case REDUCE:
      MPI_Reduce(b->rank == 0 ? MPI_IN_PLACE : b->in, b->out, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
      break;
    case BROADCAST: MPI_Bcast(b->out, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case ALL_GATHER: MPI_Allgather(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block(b->in, b->out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case GATHER: MPI_Gather(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case SCATTER: MPI_Scatter(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case ALL_TO_ALL: MPI_Alltoall(b->in, n, MPI_FLOAT, b->out, n, MPI_FLOAT, MPI_COMM_WORLD); break;
    case SEND_RECV:
      MPI_Sendrecv(b->in, n, MPI_FLOAT, next_rank(b), 0, b->out, n, MPI_FLOAT, previous_rank(b), 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      break;
    default: MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(library, &length);
  struct bench b = parse_bench(strstr(library, "Open MPI") ? "openmpi" : "mpich", argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  b.call = call;
  b.maximum = maximum;
  run_sizes(&b, 0);
  MPI_Finalize();
  return 0;
}
