// Compares attention and its gradients in all float types with those of the CPU, for our kernels and for cuDNN.
#pragma once

#include "tensor/cuda/libraries/dnn_kernels.h"
#include "test/cuda/tensor_cuda_twin.h"

namespace ringwise::test {

/// Heads that lie side by side in rows, as in a packed projection, on the host and on the device. `gap` elements lie
/// between rows.
struct Heads {
  std::unique_ptr<Wide> data;
  HeadRows on_host, on_device;
  Heads(DType dtype, size_t batch, size_t heads, size_t rows, size_t width, size_t gap) {
    const size_t step = heads * width + gap;
    data = std::make_unique<Wide>(dtype, batch * rows * step, 0.25);
    const auto place = [&](char* at) {
      return HeadRows{at, static_cast<ptrdiff_t>(rows * step), static_cast<ptrdiff_t>(width),
                      static_cast<ptrdiff_t>(step)};
    };
    on_host = place(data->host());
    on_device = place(data->device());
  }
};

/// Compares attention and its gradients with those of the CPU. `attend` and `attend_back` have the signatures of
/// gpu::attend_by_library and gpu::attend_back_by_library. `mask`: 0 for none, 1 for a bool mask, 2 for an added mask,
/// 3 for a bool mask that hides all keys from every third query, 4 for a bool mask that is the same for all queries.
template <class Attend, class AttendBack>
void check_attention(DType dtype, const Attention& sizes, size_t gap, int mask, Attend attend, AttendBack attend_back) {
  const auto& [batch, heads, queries, keys, width, value_width] =
      std::tie(sizes.batch, sizes.heads, sizes.queries, sizes.keys, sizes.width, sizes.value_width);
  Heads q(dtype, batch, heads, queries, width, gap), k(dtype, batch, heads, keys, width, gap),
      v(dtype, batch, heads, keys, value_width, gap);
  Heads out(dtype, batch, heads, queries, value_width, gap), grad(dtype, batch, heads, queries, value_width, gap);
  Heads grad_q(dtype, batch, heads, queries, width, gap), grad_k(dtype, batch, heads, keys, width, gap),
      grad_v(dtype, batch, heads, keys, value_width, gap);
  Twin lse(computing(dtype), batch * heads * queries);
  Wide plane(dtype, queries * keys);
  Twin hidden(DType::Bool, queries * keys);
  const bool is_bool = mask != 2;
  if (mask == 3) {
    for (size_t i = 0; i < queries * keys; i++) {
      if (i / keys % 3 == 1) set(DType::Bool, hidden.host(), i, 0);
    }
    hidden.upload();
  }
  Attention host = sizes, device = sizes;
  host.dtype = computing(dtype), device.dtype = dtype;
  host.q = q.on_host, host.k = k.on_host, host.v = v.on_host, host.out = out.on_host, host.lse = lse.host();
  device.q = q.on_device, device.k = k.on_device, device.v = v.on_device, device.out = out.on_device,
  device.lse = lse.device();
  if (mask) {
    const ptrdiff_t row = mask == 4 ? 0 : static_cast<ptrdiff_t>(keys);
    host.mask = {is_bool ? hidden.host<char>() : plane.host(), is_bool ? DType::Bool : computing(dtype), 0, 0, row, 1};
    device.mask = {is_bool ? hidden.device<char>() : plane.device(), is_bool ? DType::Bool : dtype, 0, 0, row, 1};
  }
  cpu.attention(host);
  CHECK(attend(device));
  const double tolerance = std::max(2e-5, 2 * tolerance_of(dtype));
  out.data->compare(tolerance, "attention");
  lse.compare(tolerance, "attention's lse");
  lse.upload();
  // Both sides compute the gradients from rounded results, and from the same lse.
  cpu.attention_grad({host, grad.on_host, grad_q.on_host, grad_k.on_host, grad_v.on_host});
  CHECK(attend_back(AttentionGrad{device, grad.on_device, grad_q.on_device, grad_k.on_device, grad_v.on_device}));
  grad_q.data->compare(4 * tolerance, "attention's grad_q");
  grad_k.data->compare(4 * tolerance, "attention's grad_k");
  grad_v.data->compare(4 * tolerance, "attention's grad_v");
}

}  // namespace ringwise::test
