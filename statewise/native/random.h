// Random numbers that are a function of a seed and a place, as transforms/counter.py defines them, bit for bit.
//
// Everything here is exact integer arithmetic or a single rounding at a time, so that other code can give the same
// numbers: products and sums are never fused.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pointwise.h"

namespace statewise {
namespace counter {

constexpr int kWords = kVectorBytes / 8;  // 64-bit words that are made at once
typedef uint64_t Words __attribute__((vector_size(kVectorBytes)));
typedef int32_t Ints __attribute__((vector_size(kVectorBytes / 2)));
typedef float Floats __attribute__((vector_size(kVectorBytes / 2)));

// A product that the compiler cannot fuse with a following sum.
inline Floats times(Floats a, Floats b) {
    Floats product = a * b;
#if defined(__AVX512F__)
    asm("" : "+v"(product));
#elif defined(__x86_64__) || defined(__i386__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
    return product;
}
inline Floats same(float value) { return value - Floats{}; }

// SplitMix64 of seed + index * golden ratio (Steele et al. 2014).
inline Words words_at(uint64_t seed, uint64_t first) {
    Words lane = {};
    for (int i = 0; i < kWords; ++i) lane[i] = uint64_t(i);  // the compiler makes a constant of it
    Words x = seed + (first + lane) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

inline Ints high31(Words x) { return __builtin_convertvector(x >> 33, Ints); }
inline Floats to_float(Ints x) { return __builtin_convertvector(x, Floats); }

// ln u for 0 < u <= 1, by the polynomial of the Cephes library.
inline Floats log_(Floats u) {
    const Ints bits = detail::bit_cast<Ints>(u);
    Ints exponent = (bits >> 23) - 127;
    Floats m = detail::bit_cast<Floats>((bits & 0x007FFFFF) | 0x3F800000);
    const Ints large = m > 1.41421356f;
    exponent -= large;  // a true comparison is -1
    m = large ? times(m, same(0.5f)) : m;
    const Floats x = m - 1.0f, z = times(x, x), e = to_float(exponent);
    constexpr float kSeries[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                                 -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    Floats y = same(kSeries[0]);
    for (int i = 1; i < 9; ++i) y = times(y, x) + kSeries[i];
    y = times(times(y, x), z);
    y = y + times(e, same(-2.12194440e-4f));
    y = y - times(z, same(0.5f));
    return (x + y) + times(e, same(0.693359375f));
}

inline Floats square_root(Floats x) {
#if defined(__AVX512F__)
    return (Floats)_mm256_sqrt_ps((__m256)x);
#else
    for (int i = 0; i < kWords; ++i) x[i] = std::sqrt(x[i]);
    return x;
#endif
}

struct Pair {
    Floats first, second;
};

// Two independent normal numbers from each word (Box & Muller 1958): 31 bits for the radius, 26 for the angle.
inline Pair normals(Words word) {
    const Floats u = times(to_float(high31(word)) + 1.0f, same(0x1p-31f));
    const Floats minus_two_log = times(log_(u), same(-2.0f));
    const Floats radius = square_root(minus_two_log);
    const Ints low = __builtin_convertvector(word & 0x3FFFFFFull, Ints);
    const Ints quadrant = low >> 24;
    const Floats angle = times(to_float(low & 0xFFFFFF) - 8388607.5f, same(9.36267686e-8f));  // pi / 2 * 2^-24
    const Floats z = times(angle, angle);
    Floats s = times(times(z, same(-1.9515295891e-4f)) + 8.3321608736e-3f, z) - 1.6666654611e-1f;
    s = times(times(s, z), angle) + angle;
    Floats c = times(times(z, same(2.443315711809948e-5f)) - 1.388731625493765e-3f, z) + 4.166664568298827e-2f;
    c = (times(times(c, z), z) - times(z, same(0.5f))) + 1.0f;
    const Ints odd = (quadrant & 1) == 1;
    const Floats turned_c = odd ? s : c, turned_s = odd ? c : s;
    const Ints negate_c = (quadrant == 1) | (quadrant == 2), negate_s = quadrant >= 2;
    return {times(radius, negate_c ? -turned_c : turned_c), times(radius, negate_s ? -turned_s : turned_s)};
}

// Two uniform numbers of 24 bits from each word, in [0, 1).
inline Pair uniforms(Words word) {
    const Ints high = __builtin_convertvector(word >> 40, Ints);
    const Ints low = __builtin_convertvector((word >> 8) & 0xFFFFFFull, Ints);
    return {times(to_float(high), same(0x1p-24f)), times(to_float(low), same(0x1p-24f))};
}

// One step of n numbers from word `first` on: the words' first numbers fill the first half, their second the other.
inline void fill_step(float* out, int64_t n, uint64_t seed, uint64_t first, bool normal, float mean, float std) {
    const int64_t half = (n + 1) / 2;
    for (int64_t at = 0; at < half; at += kWords) {
        const Words word = words_at(seed, first + uint64_t(at));
        Pair pair = normal ? normals(word) : uniforms(word);
        if (normal) {
            pair.first = times(pair.first, same(std)) + mean;
            pair.second = times(pair.second, same(std)) + mean;
        }
        if (half + at + kWords <= n) {
            std::memcpy(out + at, &pair.first, sizeof(Floats));
            std::memcpy(out + half + at, &pair.second, sizeof(Floats));
            continue;
        }
        const int64_t count = std::min<int64_t>(kWords, half - at);
        float lanes[2][kWords];
        std::memcpy(lanes[0], &pair.first, sizeof(Floats));
        std::memcpy(lanes[1], &pair.second, sizeof(Floats));
        std::copy(lanes[0], lanes[0] + count, out + at);
        std::copy(lanes[1], lanes[1] + std::max<int64_t>(0, std::min(count, n - half - at)), out + half + at);
    }
}

}  // namespace counter
}  // namespace statewise
