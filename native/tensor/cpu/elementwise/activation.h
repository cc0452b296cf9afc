// The activations that a linear layer can end with, and their slopes, for every floating computing type. Included only
// by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Calls use(function, gradient). gradient(g, saved) is g times the slope; `saved` is the result of relu, or the
// argument of the other activations.
template <class Use>
inline void with_activation(Activation activation, Use use) {
  switch (activation) {
    case Activation::Relu:
      return use([](auto x) RINGWISE_INLINE { return x < like(x, 0) ? like(x, 0) : x; },
                 [](auto g, auto y) RINGWISE_INLINE { return y <= like(y, 0) ? like(y, 0) : g; });
    case Activation::Gelu:
      return use([](auto x) RINGWISE_INLINE { return x * normal_cdf(x); },
                 [](auto g, auto x) RINGWISE_INLINE { return g * (normal_cdf(x) + x * normal_density(x)); });
    case Activation::GeluTanh:
      return use([](auto x) RINGWISE_INLINE { return x * gelu_tanh_gate(x); },
                 [](auto g, auto x) RINGWISE_INLINE { return g * gelu_tanh_slope(x); });
    default: return use([](auto x) RINGWISE_INLINE { return x; }, [](auto g, auto) RINGWISE_INLINE { return g; });
  }
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
