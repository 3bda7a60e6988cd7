// Vectors of the machine's width, and exp, sigmoid and tanh on them.
//
// Written in the vector extensions that GCC and Clang share: arithmetic, comparison and ?: act lane by lane, and a
// scalar beside a vector is broadcast. All three functions rest on exp(x) - 1 = 2^n (p(r) + 1) - 1 with
// x = n ln 2 + r and |r| <= ln(2) / 2, whose polynomial p keeps full relative precision near 0. Saturation and NaN
// behave as in the C library, so the file must not be compiled with -ffast-math.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "platform.h"

namespace STATEWISE {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kRegisters = 32;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16;
constexpr int kRegisters = 32;
#else
constexpr int kVectorBytes = 16;
constexpr int kRegisters = 16;
#endif

// A vector of T, with loads and stores that ask nothing of the alignment.
template <class T, int Bytes = kVectorBytes>
struct Vec {
    typedef T type __attribute__((vector_size(Bytes)));
    static constexpr int64_t width = Bytes / int64_t(sizeof(T));

    static type broadcast(T value) { return value - type{}; }

    static type load(const T* from) {
        type value;
        std::memcpy(&value, from, sizeof(type));
        return value;
    }
    static void store(T* to, type value) { std::memcpy(to, &value, sizeof(type)); }

    // The first `count` lanes, 0 <= count <= width; the others read as 0 and are not written.
    static type load(const T* from, int64_t count) {
#if defined(__AVX512F__)
        if constexpr (Bytes == 64 && sizeof(T) == 4) {
            return (type)_mm512_maskz_loadu_ps(__mmask16((1u << count) - 1), from);
        } else if constexpr (Bytes == 64) {
            return (type)_mm512_maskz_loadu_pd(__mmask8((1u << count) - 1), from);
        }
#endif
        T lanes[width] = {};
        for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
        return load(lanes);
    }
    static void store(T* to, type value, int64_t count) {
#if defined(__AVX512F__)
        if constexpr (Bytes == 64 && sizeof(T) == 4) {
            return _mm512_mask_storeu_ps(to, __mmask16((1u << count) - 1), (__m512)value);
        } else if constexpr (Bytes == 64) {
            return _mm512_mask_storeu_pd(to, __mmask8((1u << count) - 1), (__m512d)value);
        }
#endif
        T lanes[width];
        store(lanes, value);
        for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
    }
};

template <class T>
using Vector = typename Vec<T>::type;

namespace detail {

template <class V>
using Element = std::decay_t<decltype(std::declval<V&>()[0])>;

// The integers of T's size, as a vector as wide as V.
template <class V>
using Bits = typename Vec<std::conditional_t<sizeof(Element<V>) == 4, int32_t, int64_t>, int(sizeof(V))>::type;

template <class To, class From>
inline To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    std::memcpy(&to, &from, sizeof(To));
    return to;
}

template <class T>
struct Exp;

template <>
struct Exp<float> {
    static constexpr int kMantissa = 23;
    static constexpr int32_t kBias = 127;
    static constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
    static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
    static constexpr float kLowest = -104.0f, kHighest = 89.0f;  // beyond: exactly 0 and infinity
    static constexpr float kLowestNormal = -87.0f;
    static constexpr float kTanhIsOne = 20.0f;  // of 2|x|
    // Near-minimax fit of (exp(r) - 1 - r) / r^2, constant term last.
    static constexpr float kSeries[] = {1.3926191056e-3f, 8.3631850315e-3f, 4.1666554572e-2f, 1.6666576954e-1f, 0.5f};
};

template <>
struct Exp<double> {
    static constexpr int kMantissa = 52;
    static constexpr int64_t kBias = 1023;
    static constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
    static constexpr double kLowest = -746.0, kHighest = 710.0;
    static constexpr double kLowestNormal = -708.0;
    static constexpr double kTanhIsOne = 40.0;
    static constexpr double kSeries[] = {2.5100395159429244017e-8, 2.7620101012098000228e-7, 2.7557268439678002354e-6,
                                         2.4801521269532121095e-5, 1.9841269863066695027e-4, 1.3888888917230723233e-3,
                                         8.3333333333300592137e-3, 4.166666666662409382e-2,  1.6666666666666667454e-1,
                                         0.5};
};

// x = n ln 2 + r; `shifted` is n + kMagic, and `tail` is exp(r) - 1.
template <class V>
struct Reduced {
    V shifted, tail;
};

template <class V>
inline Reduced<V> reduce(V x) {
    using E = Exp<Element<V>>;
    const V shifted = x * Element<V>(1.44269504088896340736) + E::kMagic;
    const V n = shifted - E::kMagic;
    const V r = (x - n * E::kLn2High) - n * E::kLn2Low;
    V series = E::kSeries[0] - V{};
    for (size_t i = 1; i < sizeof(E::kSeries) / sizeof(E::kSeries[0]); ++i) series = series * r + E::kSeries[i];
    return {shifted, (r * r) * series + r};
}

// 2^n for -bias < n <= bias + 1, the last of which is infinity.
template <class V>
inline V power_of_two(V shifted) {
    using E = Exp<Element<V>>;
    // The shift drops every bit of kMagic itself.
    return bit_cast<V>((bit_cast<Bits<V>>(shifted) + E::kBias) << E::kMantissa);
}

// Comparisons with NaN are false, so NaN passes through both.
template <class V>
inline V at_least(V x, Element<V> bound) {
    return x < bound ? bound - V{} : x;
}
template <class V>
inline V at_most(V x, Element<V> bound) {
    return x > bound ? bound - V{} : x;
}

// 1 / x for x >= 1, to about an ulp, and 0 for infinity: a division of vectors keeps the unit busy for as long as ten products.
template <class V>
inline V reciprocal(V x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64 && sizeof(Element<V>) == 4) {
        const V guess = (V)_mm512_rcp14_ps((__m512)x);
        // Beyond 2^126 the guess underflows, and refining 0 for infinity would make NaN of it.
        return x < 8.5e37f ? guess + guess * (1 - x * guess) : guess;
    }
#endif
    return 1 / x;
}

}  // namespace detail

// e^x, over the whole range including subnormal results.
template <class V>
inline V exp_(V x) {
    using E = detail::Exp<detail::Element<V>>;
    const auto parts = detail::reduce(detail::at_most(detail::at_least(x, E::kLowest), E::kHighest));
    // Two factors, because 2^n itself may be out of range.
    const V n = parts.shifted - E::kMagic;
    const V half = n * detail::Element<V>(0.5) + E::kMagic;
    const V rest = (n - (half - E::kMagic)) + E::kMagic;
    return (parts.tail + 1) * detail::power_of_two(half) * detail::power_of_two(rest);
}

// 1 / (1 + e^-x).
template <class V>
inline V sigmoid(V x) {
    using E = detail::Exp<detail::Element<V>>;
    const auto parts = detail::reduce(detail::at_most(detail::at_least(-x, E::kLowestNormal), E::kHighest));
    return detail::reciprocal(1 + (parts.tail + 1) * detail::power_of_two(parts.shifted));
}

// tanh x = E / (E + 2) with E = e^(2|x|) - 1, given the sign of x.
template <class V>
inline V tanh_(V x) {
    using T = detail::Element<V>;
    using Bits = detail::Bits<V>;
    const Bits sign = detail::bit_cast<Bits>(x) & detail::bit_cast<Bits>(T(-0.0) - V{});
    const V magnitude = detail::bit_cast<V>(detail::bit_cast<Bits>(x) ^ sign);
    const auto parts = detail::reduce(detail::at_most(magnitude + magnitude, detail::Exp<T>::kTanhIsOne));
    const V power = detail::power_of_two(parts.shifted);
    const V grown = power * parts.tail + (power - 1);
    return detail::bit_cast<V>(detail::bit_cast<Bits>(grown * detail::reciprocal(grown + 2)) | sign);
}

}  // namespace STATEWISE
