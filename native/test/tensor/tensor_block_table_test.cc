// Tests the table that names the memory of tensors by integer handles.
#include "tensor/block_table.h"
#include "test/check.h"

using namespace ringwise;
using tensor::Block;
using tensor::BlockTable;

namespace {
/// Returns a block that adds one to `dropped` when its keeper is destroyed.
Block counted(int& dropped, size_t count) {
  return {std::shared_ptr<void>(nullptr, [&dropped](void*) { dropped++; }), nullptr, DType::Int64, count};
}
}  // namespace

TEST("a handle finds its block until it is removed, and its keeper is dropped then") {
  int dropped = 0;
  BlockTable table;
  const int32_t one = table.add(counted(dropped, 3)), two = table.add(counted(dropped, 5));
  CHECK_EQ(table.find(one)->count, 3u);
  CHECK_EQ(table.find(two)->count, 5u);
  CHECK_EQ(table.bytes(), 64u);
  CHECK(table.remove(one));
  CHECK_EQ(dropped, 1);
  CHECK(table.find(one) == nullptr);
  CHECK(!table.remove(one));
  CHECK_EQ(table.size(), 1u);
  CHECK_EQ(table.bytes(), 40u);
}

TEST("a stale handle does not find the block that took its slot") {
  int dropped = 0;
  BlockTable table;
  int32_t last = table.add(counted(dropped, 1));
  for (int i = 0; i < 5000; i++) {
    table.remove(last);
    const int32_t next = table.add(counted(dropped, 1));
    CHECK(next > 0);
    CHECK(table.find(last) == nullptr);
    CHECK(table.find(next) != nullptr);
    last = next;
  }
  CHECK_EQ(table.size(), 1u);
}

TEST("numbers that are no handles find nothing") {
  BlockTable table;
  for (const int32_t handle : {0, 1, -1, INT32_MIN, INT32_MAX}) CHECK(table.find(handle) == nullptr);
  int dropped = 0;
  table.remove(table.add(counted(dropped, 1)));
  // Slot 0 is free now, with handle 0.
  CHECK(table.find(0) == nullptr);
  CHECK(!table.remove(0));
  CHECK(table.add(counted(dropped, 1)) != table.add(counted(dropped, 1)));
}

TEST("a table that is destroyed drops the blocks left in it") {
  int dropped = 0;
  {
    BlockTable table;
    for (int i = 0; i < 10; i++) table.add(counted(dropped, 1));
  }
  CHECK_EQ(dropped, 10);
}

int main() { return test::run_all(); }
