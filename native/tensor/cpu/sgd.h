// One step of stochastic gradient descent in the order of operations of torch.optim.SGD: decay, velocity, Nesterov,
// update. Every array is read and written once. Included only by level.h.
namespace ringwise::tensor::RINGWISE_LEVEL {

void sgd(float* param, const float* grad, float* velocity, const SgdOptions& options, size_t count) {
  const Vec lr = splat(options.lr), decay = splat(options.weight_decay), momentum = splat(options.momentum);
  const Vec fresh = splat(1.0f - options.dampening);
  for_each_vec(count, [&](size_t i, auto io) RINGWISE_INLINE {
    const Vec value = io.load(param + i);
    Vec step = io.load(grad + i) + decay * value;
    if (velocity) {
      const Vec speed = options.first ? step : momentum * io.load(velocity + i) + fresh * step;
      io.store(velocity + i, speed);
      step = options.nesterov ? step + momentum * speed : speed;
    }
    io.store(param + i, value - lr * step);
  });
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
