// Random numbers that are a function of a seed and a place, bit for bit as transforms/counter.py, transforms/gammas.py
// and transforms/recipes.py define them.
//
// Everything here is exact integer arithmetic or a single rounding at a time, so that other code can give the same
// numbers: products and sums are never fused.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pointwise.h"

namespace STATEWISE {
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
#elif defined(__AVX__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
    return product;
}
inline Floats same(float value) { return value - Floats{}; }

template <class T>
inline T scrambled(T x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;

// SplitMix64 of seed + index * golden ratio (Steele et al. 2014).
inline Words words_at(uint64_t seed, uint64_t first) {
    Words lane = {};
    for (int i = 0; i < kWords; ++i) lane[i] = uint64_t(i);  // the compiler makes a constant of it
    return scrambled(seed + (first + lane) * kGolden);
}

// The seed of a part of what a seed stands for: seed_of in transforms/counter.py.
inline uint64_t seed_of(uint64_t seed, uint64_t part) { return scrambled((seed ^ (part + 1)) + kGolden) >> 1; }

inline Ints high31(Words x) { return __builtin_convertvector(x >> 33, Ints); }
inline Ints low31(Words x) { return __builtin_convertvector((x & 0xFFFFFFFFull) >> 1, Ints); }
inline Floats to_float(Ints x) { return __builtin_convertvector(x, Floats); }

// ln u of positive normal numbers, by the polynomial of the Cephes library.
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

// e^x of numbers up to 0, by the polynomial of the Cephes library; 0 below -88.
inline Floats exp_(Floats x) {
    x = x < -88.0f ? same(-88.0f) : x;
    const Ints n = __builtin_convertvector(times(x, same(1.44269504f)) - 0.5f, Ints);  // cut towards 0
    Floats r = x - times(to_float(n), same(0.693359375f));
    r = r - times(to_float(n), same(-2.12194440e-4f));
    constexpr float kSeries[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    Floats y = same(kSeries[0]);
    for (int i = 1; i < 6; ++i) y = times(y, r) + kSeries[i];
    y = (times(y, times(r, r)) + r) + 1.0f;
    return times(y, detail::bit_cast<Floats>((n + 127) << 23));  // 2^n, and 0 for the lowest n
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

// Two random signs (true is minus), and two uniform numbers of 31 bits in (0, 1].
struct Shares {
    Ints minus[2];
    Floats share[2];
};
inline Shares signed_shares(Words word) {
    Shares made;
    made.minus[0] = __builtin_convertvector((word >> 32) & 1ull, Ints) == 1;
    made.minus[1] = __builtin_convertvector(word & 1ull, Ints) == 1;
    made.share[0] = times(to_float(high31(word)) + 1.0f, same(0x1p-31f));
    made.share[1] = times(to_float(low31(word)) + 1.0f, same(0x1p-31f));
    return made;
}

// A unit exponential number with all its digits at both ends.
inline Floats exponential(Ints small, Floats share) {
    const Floats p = times(share, same(0.5f)), rest = 1.0f - p, lost = (1.0f - rest) - p;
    return -(log_(small ? rest : p) + (small ? lost : Floats{}));
}
inline Floats laplace(Ints minus, Floats share) {
    const Floats l = log_(share);
    return minus ? l : -l;
}
inline Floats logistic(Ints minus, Floats share) {
    const Floats odds = log_(share / (2.0f - share));
    return minus ? odds : -odds;
}
inline Floats gumbel(Ints small, Floats share) { return -log_(exponential(small, share)); }

// Both numbers of each word by a function of a sign and a share.
template <class Make>
inline Pair from_shares(Words word, Make make) {
    const Shares s = signed_shares(word);
    return {make(s.minus[0], s.share[0]), make(s.minus[1], s.share[1])};
}

inline Pair bernoullis(Words word, uint64_t bound) {
    const Ints one = __builtin_convertvector((word >> 32) < bound, Ints);
    const Ints other = __builtin_convertvector((word & 0xFFFFFFFFull) < bound, Ints);
    return {one ? same(1.0f) : Floats{}, other ? same(1.0f) : Floats{}};
}

inline bool all(Ints mask) {
    int32_t both = -1;
    for (int i = 0; i < kWords; ++i) both &= mask[i];
    return both != 0;
}

// A gamma variable by the proposals of Marsaglia & Tsang (2000); transforms/gammas.py explains it.
class GammaVariable {
public:
    static constexpr int kRounds = 16;

    GammaVariable() = default;
    GammaVariable(uint64_t whole, uint64_t index, const float* shape) : d_(shape[0]), c_(shape[1]), inverse_(shape[2]) {
        const uint64_t seed = counter::seed_of(whole, index);
        for (int part = 0; part <= 2 * kRounds; ++part) seeds_[part] = counter::seed_of(seed, uint64_t(part));
    }

    bool boosted() const { return inverse_ != 0; }

    // Minus the logarithm of what a variable of shape + 1 is multiplied by; 0 from shape 1 on.
    Pair weights(uint64_t first) const {
        if (!boosted()) return {Floats{}, Floats{}};
        const Pair e = from_shares(words_at(seeds_[0], first), exponential);
        return {times(e.first, same(inverse_)), times(e.second, same(inverse_))};
    }

    // d (1 + t)^3, which is never 0.
    Pair unboosted(uint64_t first) const {
        const Pair t = steps_from_one(first);
        return {cubed(t.first + 1.0f), cubed(t.second + 1.0f)};
    }

    // What unboosted() gives, less the shape.
    Pair centred(uint64_t first) const {
        const Pair t = steps_from_one(first);
        return {times(grown(t.first), same(d_)) - 1.0f / 3.0f, times(grown(t.second), same(d_)) - 1.0f / 3.0f};
    }

private:
    float d_, c_, inverse_;
    uint64_t seeds_[2 * kRounds + 1];

    Floats cubed(Floats s) const { return times(times(times(s, s), s), same(d_)); }
    static Floats grown(Floats t) { return times(t, times(t + 3.0f, t) + 3.0f); }

    // Whether the proposal t = c x of a normal number is accepted.
    Ints accepts(Floats x, Floats t, Floats share) const {
        const Floats s = t + 1.0f, log_s = log_(s) + (t - (s - 1.0f));
        const Floats limit = times(times(x, x), same(0.5f)) - times(grown(t) - times(log_s, same(3.0f)), same(d_));
        return (s > 0.0f) & (log_(share) < limit);
    }

    // The first accepted t of each place.
    Pair steps_from_one(uint64_t first) const {
        Pair found = {};
        Ints done = {}, other_done = {};
        for (int turn = 0; turn < kRounds; ++turn) {
            const Pair x = normals(words_at(seeds_[2 * turn + 1], first));
            const Words word = words_at(seeds_[2 * turn + 2], first);
            const Shares u = signed_shares(word);
            const Floats t = times(x.first, same(c_)), other = times(x.second, same(c_));
            const Ints taken = accepts(x.first, t, u.share[0]) & ~done;
            const Ints other_taken = accepts(x.second, other, u.share[1]) & ~other_done;
            found.first = taken ? t : found.first;
            found.second = other_taken ? other : found.second;
            done |= taken;
            other_done |= other_taken;
            if (all(done & other_done)) break;
        }
        return found;
    }
};

inline Pair gammas(const GammaVariable& variable, uint64_t first) {
    if (!variable.boosted()) return variable.centred(first);
    const Pair g = variable.unboosted(first), weight = variable.weights(first);
    return {times(g.first, exp_(-weight.first)), times(g.second, exp_(-weight.second))};
}

inline Floats share_of(Floats g, Floats h, Floats ahead) {
    const Floats factor = exp_(ahead > 0.0f ? -ahead : ahead);
    const Floats less = times(g, factor), other_less = times(h, factor);
    g = ahead > 0.0f ? g : less;
    h = ahead > 0.0f ? other_less : h;
    return g / (g + h);
}

inline Pair betas(const GammaVariable& one, const GammaVariable& other, uint64_t first) {
    const Pair weight = one.weights(first), other_weight = other.weights(first);
    const Pair g = one.unboosted(first), h = other.unboosted(first);
    return {share_of(g.first, h.first, other_weight.first - weight.first),
            share_of(g.second, h.second, other_weight.second - weight.second)};
}

// The laws, numbered as in transforms/recipes.py.
enum class Kind : int64_t { kUniform, kNormal, kBernoulli, kLaplace, kLogistic, kGumbel, kGamma, kBeta };

struct Recipe {
    Kind kind;
    float scale, shift;
    uint64_t bound;
    float shapes[6];
};

// One step of n numbers, scale * raw + shift, from word `first` on: the words' first numbers fill the first half, their
// second the other. make(index) gives the raw numbers of kWords words from an index on.
template <class Make>
inline void fill_step(float* out, int64_t n, uint64_t first, float scale, float shift, Make make) {
    const int64_t half = (n + 1) / 2;
    for (int64_t at = 0; at < half; at += kWords) {
        Pair pair = make(first + uint64_t(at));
        pair.first = times(pair.first, same(scale)) + shift;
        pair.second = times(pair.second, same(scale)) + shift;
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

// Calls run with the function that makes the raw numbers of a recipe from the index of their first word.
template <class Run>
inline void with_recipe(const Recipe& recipe, uint64_t seed, Run&& run) {
    const GammaVariable one(seed, 0, recipe.shapes), other(seed, 1, recipe.shapes + 3);
    const auto shares = [&](auto make) {
        run([seed, make](uint64_t at) { return from_shares(words_at(seed, at), make); });
    };
    switch (recipe.kind) {
        case Kind::kUniform: return run([=](uint64_t at) { return uniforms(words_at(seed, at)); });
        case Kind::kNormal: return run([=](uint64_t at) { return normals(words_at(seed, at)); });
        case Kind::kBernoulli: return run([=, bound = recipe.bound](uint64_t at) { return bernoullis(words_at(seed, at), bound); });
        case Kind::kLaplace: return shares([](Ints minus, Floats share) { return laplace(minus, share); });
        case Kind::kLogistic: return shares([](Ints minus, Floats share) { return logistic(minus, share); });
        case Kind::kGumbel: return shares([](Ints minus, Floats share) { return gumbel(minus, share); });
        case Kind::kGamma: return run([&one](uint64_t at) { return gammas(one, at); });
        case Kind::kBeta: return run([&](uint64_t at) { return betas(one, other, at); });
    }
}

}  // namespace counter
}  // namespace STATEWISE
