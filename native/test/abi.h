// Compares our declarations of functions with those of a vendor: `Same<A, B>::value` tells whether two types of
// function pointers have the same calling interface. Pointers may have any target type; all other types must agree in
// size, alignment and kind (class, floating-point or other).
#pragma once

#include <type_traits>

template <class A, class B>
constexpr bool is_same_argument() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>)
    return std::is_void_v<A> == std::is_void_v<B>;
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> == std::is_pointer_v<B>;
  else
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) && std::is_class_v<A> == std::is_class_v<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <class A, class B>
struct Same : std::false_type {};
template <class A, class... As, class B, class... Bs>
struct Same<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool all() {
    if constexpr (sizeof...(As) != sizeof...(Bs))
      return false;
    else
      return is_same_argument<A, B>() && (is_same_argument<As, Bs>() && ...);
  }
  static constexpr bool value = all();
};
