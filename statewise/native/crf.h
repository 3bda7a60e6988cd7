// A linear-chain conditional random field: log partitions and their gradients, and the scores of given paths.
//
// Forward, alpha_t[j] = E_t[j] + log sum_i exp(alpha_{t-1}[i] + A[i, j]) and log Z_t = log sum_j exp(alpha_t[j] + end[j]).
// A sequence is walked with weights p_t in proportion to exp(alpha_t): a step is then a product of p with exp(A), and no
// exponential is taken but of the emissions. All sums are double, so this holds over three hundred orders of magnitude;
// a sequence that needs more (a score of -10000, say, on the only way through) is walked again with logarithms. A
// forbidden transition is -inf, and its weight exactly 0, in both.
//
// Backward is the adjoint of that recursion for any number of prefixes at once, d_t = g_t softmax(alpha_t + end) +
// p_t * (exp(A) r_{t+1}) with r = d / (p exp(A)); the gradient of A is exp(A) * sum_t p_t r_{t+1}^T.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "pointwise.h"

namespace statewise::crf {

using at::Tensor;
using Lanes = Vec<double>;
using V = Lanes::type;
using Row = std::vector<double>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

constexpr double kNever = -std::numeric_limits<double>::infinity();
// Weights beside the greatest of their kind. While the possible ones keep above these bounds, no product underflows.
constexpr double kLeastWeight = 1e-150, kLeastTransition = 1e-120, kLeastNormal = 1e-300;
constexpr int64_t kMostChunks = 16;  // of a batch; chunks, not threads, have sums, so threads change no digit

// Rows are whole vectors, and of four numbers at least.
inline int64_t padded(int64_t tags) {
    constexpr int64_t kUnit = std::max<int64_t>(4, Lanes::width);
    return (tags + kUnit - 1) / kUnit * kUnit;
}

inline double total_of(V lanes) {
    double total = 0;
    for (int64_t i = 0; i < Lanes::width; ++i) total += lanes[i];
    return total;
}

inline double greatest(const double* values, int64_t width) {
    V most = Lanes::broadcast(kNever);
    for (int64_t j = 0; j < width; j += Lanes::width) {
        const V value = Lanes::load(values + j);
        most = value > most ? value : most;
    }
    double found = kNever;
    for (int64_t i = 0; i < Lanes::width; ++i) found = most[i] > found ? most[i] : found;
    return found;
}

// out[j] = sum_i left[i] matrix[i, j] for kVectors vectors of columns; two sums each, since one would wait for itself.
template <int kVectors>
inline void product_of(const double* left, const double* matrix, int64_t rows, int64_t width, double* out) {
    V even[kVectors] = {}, odd[kVectors] = {};
    int64_t i = 0;
    for (; i + 1 < rows; i += 2, matrix += 2 * width) {
        for (int v = 0; v < kVectors; ++v) {
            even[v] += left[i] * Lanes::load(matrix + v * Lanes::width);
            odd[v] += left[i + 1] * Lanes::load(matrix + width + v * Lanes::width);
        }
    }
    for (int v = 0; v < kVectors; ++v) {
        if (i < rows) even[v] += left[i] * Lanes::load(matrix + v * Lanes::width);
        Lanes::store(out + v * Lanes::width, even[v] + odd[v]);
    }
}

// to[i, j] += sum_t left[t, i] right[t, j] for kVectors vectors of columns, four rows at a time, all in registers.
template <int kVectors>
inline void add_outer_of(const double* left, const double* right, int64_t steps, int64_t rows, int64_t width, double* to) {
    constexpr int kRows = 4;
    for (int64_t i = 0; i < rows; i += kRows) {  // rows are padded: four are always there
        V sum[kRows][kVectors] = {};
        for (int64_t t = 0; t < steps; ++t) {
            for (int v = 0; v < kVectors; ++v) {
                const V value = Lanes::load(right + t * width + v * Lanes::width);
                for (int r = 0; r < kRows; ++r) sum[r][v] += left[t * width + i + r] * value;
            }
        }
        for (int64_t r = 0; r < std::min<int64_t>(kRows, rows - i); ++r) {
            for (int v = 0; v < kVectors; ++v) {
                double* here = to + (i + r) * width + v * Lanes::width;
                Lanes::store(here, Lanes::load(here) + sum[r][v]);
            }
        }
    }
}

// Calls work(first column, a number of vectors known to the compiler) until all columns are done.
template <class Work>
inline void by_columns(int64_t width, Work&& work) {
    for (int64_t first = 0; first < width; first += 4 * Lanes::width) {
        switch (std::min<int64_t>(4, (width - first) / Lanes::width)) {
            case 1: work(first, std::integral_constant<int, 1>()); break;
            case 2: work(first, std::integral_constant<int, 2>()); break;
            case 3: work(first, std::integral_constant<int, 3>()); break;
            default: work(first, std::integral_constant<int, 4>());
        }
    }
}

inline void product(const double* left, const double* matrix, int64_t rows, int64_t width, double* out) {
    by_columns(width, [&](int64_t first, auto vectors) {
        product_of<decltype(vectors)::value>(left, matrix + first, rows, width, out + first);
    });
}

// What all sequences share: the scores of the chain, also as weights beside the greatest. Rows are padded to whole
// vectors with what can never happen.
struct Chain {
    template <class T>
    Chain(const T* matrix, const T* first, const T* last, int64_t count)
        : tags(count), width(padded(count)), start(size_t(width), kNever), end(start),
          transitions(size_t(tags * width), kNever), weights(transitions.size()), turned(transitions.size()),
          end_weights(size_t(width)) {
        std::copy(first, first + tags, start.begin());
        std::copy(last, last + tags, end.begin());
        for (int64_t i = 0; i < tags; ++i) std::copy(matrix + i * tags, matrix + (i + 1) * tags, transitions.data() + i * width);
        top = weigh(transitions, weights);
        end_top = weigh(end, end_weights);
        for (int64_t i = 0; i < tags; ++i)
            for (int64_t j = 0; j < tags; ++j) turned[size_t(j * width + i)] = weights[size_t(i * width + j)];
    }

    // Weights beside the greatest score, which is returned; whether they serve is remembered.
    double weigh(const Row& scores, Row& to) {
        double most = greatest(scores.data(), int64_t(scores.size()));
        if (most == kNever) most = 0;
        for (size_t j = 0; j < scores.size(); j += size_t(Lanes::width))
            Lanes::store(to.data() + j, exp_(Lanes::load(scores.data() + j) - most));
        for (size_t j = 0; j < scores.size(); ++j) {
            if (!(to[j] >= kLeastTransition) && scores[j] != kNever) serves = false;
        }
        return most;
    }

    int64_t tags, width;
    Row start, end, transitions, weights, turned, end_weights;
    double top = 0, end_top = 0;
    bool serves = true;
};

template <class T>
Chain chain_of(const Tensor& transitions, const Tensor& start, const Tensor& end) {
    return {transitions.const_data_ptr<T>(), start.const_data_ptr<T>(), end.const_data_ptr<T>(), end.size(0)};
}

// Weights for scores, of those tags that `before` can reach; what they are divided by is added to `peak`, in logarithms.
// False if they are out of a double's range.
inline bool weigh_step(const double* scores, const double* before, int64_t width, double* to, double& peak) {
    const double most = greatest(scores, width);
    if (!(std::abs(most) < std::numeric_limits<double>::infinity())) return false;
    for (int64_t j = 0; j < width; j += Lanes::width) {
        const V weight = exp_(Lanes::load(scores + j) - most);
        Lanes::store(to + j, before ? Lanes::load(before + j) * weight : weight);
    }
    const double total = greatest(to, width);
    if (!(total >= kLeastNormal)) return false;
    // Divided by a power of two: nothing is rounded, and its logarithm costs nothing.
    const int power = std::ilogb(total);
    const double least = std::max(kLeastNormal, kLeastWeight * total), scale = std::ldexp(1.0, -power);
    V lost = {};
    for (int64_t j = 0; j < width; j += Lanes::width) {
        const V weight = Lanes::load(to + j), score = Lanes::load(scores + j);
        V wrong = weight >= Lanes::broadcast(least) ? V{} : Lanes::broadcast(1);  // NaN is wrong too
        wrong = score == Lanes::broadcast(kNever) ? V{} : wrong;
        if (before) wrong = Lanes::load(before + j) == V{} ? V{} : wrong;
        lost += wrong;
        Lanes::store(to + j, weight * scale);
    }
    peak += most + power * 0.693147180559945309417;
    return total_of(lost) == 0;
}

// One sequence: emissions that lie `stride` apart, and rows of `width` for the weights and what they came from. Prefixes
// lie `apart`; without `every` only the whole sequence is asked for.
template <class T>
struct Sequence {
    const T* emissions;
    int64_t stride, length, apart;
    bool every;
    double *weights, *sums;

    bool wanted(int64_t step) const { return every || step == length - 1; }
    int64_t place(int64_t step) const { return every ? step * apart : 0; }

    void read(const Chain& chain, int64_t step, double* to) const {
        const T* from = emissions + step * stride;
        for (int64_t j = 0; j < chain.tags; ++j) to[j] = double(from[j]);
    }

    // In weights; false if their range does not suffice.
    bool forward(const Chain& chain, T* out, double* scores) const {
        const int64_t width = chain.width;
        double peak = 0;
        for (int64_t t = 0; t < length; ++t) {
            double* here = weights + t * width;
            double* reached = t ? sums + t * width : nullptr;
            read(chain, t, scores);
            if (t) {
                product(here - width, chain.weights.data(), chain.tags, width, reached);
                peak += chain.top;
            } else {
                for (int64_t j = 0; j < chain.tags; ++j) scores[j] += chain.start[size_t(j)];
            }
            if (!weigh_step(scores, reached, width, here, peak)) return false;
            if (wanted(t)) out[place(t)] = T(peak + chain.end_top + std::log(ending(here, chain)));
        }
        return true;
    }

    static double ending(const double* weights, const Chain& chain) {
        V total = {};
        for (int64_t j = 0; j < chain.width; j += Lanes::width)
            total += Lanes::load(weights + j) * Lanes::load(chain.end_weights.data() + j);
        return total_of(total);
    }

    // The same in logarithms: `weights` hold alpha, and `sums` hold alpha - E.
    void forward_in_logs(const Chain& chain, T* out, double* scores) const {
        const int64_t width = chain.width;
        for (int64_t t = 0; t < length; ++t) {
            double* here = weights + t * width;
            double* reached = sums + t * width;
            read(chain, t, scores);
            if (t) {
                log_product(here - width, chain, reached);
            } else {
                std::copy(chain.start.begin(), chain.start.end(), reached);
            }
            for (int64_t j = 0; j < width; ++j) here[j] = scores[j] + reached[j];
            if (wanted(t)) out[place(t)] = T(log_ending(here, chain));
        }
    }

    static void log_product(const double* before, const Chain& chain, double* out) {
        for (int64_t j = 0; j < chain.width; j += Lanes::width) {
            V most = Lanes::broadcast(kNever), total = {};
            const double* column = chain.transitions.data() + j;
            for (int64_t i = 0; i < chain.tags; ++i) {
                const V score = before[i] + Lanes::load(column + i * chain.width);
                most = score > most ? score : most;
            }
            most = most == Lanes::broadcast(kNever) ? V{} : most;
            for (int64_t i = 0; i < chain.tags; ++i) total += exp_(before[i] + Lanes::load(column + i * chain.width) - most);
            for (int64_t lane = 0; lane < Lanes::width; ++lane) out[j + lane] = std::log(total[lane]) + most[lane];
        }
    }

    static double log_ending(const double* alpha, const Chain& chain) {
        double most = kNever, total = 0;
        for (int64_t j = 0; j < chain.tags; ++j) most = std::max(most, alpha[j] + chain.end[size_t(j)]);
        if (most == kNever) most = 0;
        for (int64_t j = 0; j < chain.tags; ++j) total += std::exp(alpha[j] + chain.end[size_t(j)] - most);
        return std::log(total) + most;
    }
};

// What a chunk of sequences adds to the gradients of the chain: to that of the transitions as a factor of their weights,
// and plainly where logarithms were needed. Then room for a step, and for the ratios of all.
struct Sums {
    Sums(const Chain& chain, int64_t steps)
        : factors(chain.transitions.size()), start(size_t(chain.width)), end(start.size()), grad(start.size()),
          carried(start.size()), ratios(size_t(steps * chain.width)) {}
    Row factors, logged, start, end, grad, carried, ratios;

    void finish(const Chain& chain) {
        for (int64_t j = 0; j < chain.width; ++j) start[size_t(j)] += grad[size_t(j)];
    }
};

// d_t of every step goes to `grads`, as the emissions lie; g_t are the incoming ones.
template <class T>
void adjoint(const Sequence<T>& s, const Chain& chain, const T* incoming, T* grads, Sums& sums) {
    const int64_t width = chain.width;
    double* const grad = sums.grad.data();
    double* const carried = sums.carried.data();
    for (int64_t t = s.length - 1; t >= 0; --t) {
        const double* here = s.weights + t * width;
        if (t + 1 < s.length) {
            // `grad` is still the later step's: what reached its tags passes it on in proportion.
            const double* reached = s.sums + (t + 1) * width;
            double* ratio = sums.ratios.data() + t * width;
            for (int64_t j = 0; j < width; j += Lanes::width) {
                const V sum = Lanes::load(reached + j);
                Lanes::store(ratio + j, sum == V{} ? V{} : Lanes::load(grad + j) / sum);
            }
            product(ratio, chain.turned.data(), chain.tags, width, carried);
            for (int64_t j = 0; j < width; j += Lanes::width)
                Lanes::store(grad + j, Lanes::load(here + j) * Lanes::load(carried + j));
        } else {
            std::fill_n(grad, width, 0.0);
        }
        const double g = s.wanted(t) ? double(incoming[s.place(t)]) : 0.0;
        const double total = g == 0 ? 0.0 : Sequence<T>::ending(here, chain);
        if (total > 0) {
            for (int64_t j = 0; j < chain.tags; ++j) {
                const double last = g / total * here[j] * chain.end_weights[size_t(j)];
                sums.end[size_t(j)] += last;
                grad[j] += last;
            }
        }
        for (int64_t j = 0; j < chain.tags; ++j) grads[t * s.stride + j] = T(grad[j]);
    }
    by_columns(width, [&](int64_t first, auto vectors) {
        add_outer_of<decltype(vectors)::value>(s.weights, sums.ratios.data() + first, s.length - 1, chain.tags, width,
                                               sums.factors.data() + first);
    });
    sums.finish(chain);
}

template <class T>
void adjoint_in_logs(const Sequence<T>& s, const Chain& chain, const T* incoming, T* grads, Sums& sums) {
    const int64_t width = chain.width;
    double* const grad = sums.grad.data();
    double* const carried = sums.carried.data();
    sums.logged.resize(sums.factors.size());
    for (int64_t t = s.length - 1; t >= 0; --t) {
        const double* alpha = s.weights + t * width;
        std::fill_n(carried, width, 0.0);
        if (t + 1 < s.length) {
            const double* reached = s.sums + (t + 1) * width;
            for (int64_t i = 0; i < chain.tags; ++i) {
                double* row = sums.logged.data() + i * width;
                for (int64_t j = 0; j < width; j += Lanes::width) {
                    const V sum = Lanes::load(reached + j);
                    const V share = exp_(alpha[i] + Lanes::load(chain.transitions.data() + i * width + j) - sum);
                    const V flow = sum == Lanes::broadcast(kNever) ? V{} : share * Lanes::load(grad + j);
                    Lanes::store(row + j, Lanes::load(row + j) + flow);
                    carried[i] += total_of(flow);
                }
            }
        }
        const double g = s.wanted(t) ? double(incoming[s.place(t)]) : 0.0;
        const double total = g == 0 ? kNever : Sequence<T>::log_ending(alpha, chain);
        for (int64_t j = 0; j < width; ++j) {
            const double last = total == kNever ? 0 : g * std::exp(alpha[j] + chain.end[size_t(j)] - total);
            sums.end[size_t(j)] += last;
            grad[j] = last + carried[j];
        }
        for (int64_t j = 0; j < chain.tags; ++j) grads[t * s.stride + j] = T(grad[j]);
    }
    sums.finish(chain);
}

template <class T>
Sequence<T> sequence_of(const T* emissions, const Tensor& lengths, bool every, const Tensor& weights, const Tensor& sums,
                        int64_t tags, int64_t b) {
    const int64_t batch = weights.size(0), row = b * weights.size(1) * weights.size(2);
    return {emissions ? emissions + b * tags : nullptr, batch * tags, lengths.const_data_ptr<int64_t>()[b], batch, every,
            weights.data_ptr<double>() + row, sums.data_ptr<double>() + row};
}

// log Z of every prefix, (steps, batch), 0 beyond the lengths, or of the whole alone, (batch,); then the rows that
// backward needs, and which sequences were walked in logarithms. Emissions are (steps, batch, tags). All tensors are
// contiguous, of one dtype, and lengths int64.
inline Four forward(const Tensor& emissions, const Tensor& transitions, const Tensor& start, const Tensor& end,
                    const Tensor& lengths, bool every) {
    const int64_t steps = emissions.size(0), batch = emissions.size(1), tags = emissions.size(2);
    Tensor out = every ? at::zeros({steps, batch}, emissions.options()) : at::empty({batch}, emissions.options());
    Tensor weights = at::empty({batch, steps, padded(tags)}, emissions.options().dtype(at::kDouble));
    Tensor sums = at::empty_like(weights), logged = at::empty({batch}, emissions.options().dtype(at::kBool));
    AT_DISPATCH_FLOATING_TYPES(emissions.scalar_type(), "statewise_crf_forward", [&] {
        const Chain chain = chain_of<scalar_t>(transitions, start, end);
        at::parallel_for(0, batch, 4, [&](int64_t first, int64_t last) {
            Row scores(size_t(chain.width), kNever);
            for (int64_t b = first; b < last; ++b) {
                const auto s = sequence_of(emissions.const_data_ptr<scalar_t>(), lengths, every, weights, sums, tags, b);
                scalar_t* to = out.data_ptr<scalar_t>() + b;
                const bool served = chain.serves && s.forward(chain, to, scores.data());
                if (!served) s.forward_in_logs(chain, to, scores.data());
                logged.data_ptr<bool>()[b] = !served;
            }
        });
    });
    return {out, weights, sums, logged};
}

// The gradients of emissions, transitions, start and end from those of what forward gave.
inline Four backward(const Tensor& incoming, const Tensor& transitions, const Tensor& start, const Tensor& end,
                     const Tensor& lengths, bool every, const Tensor& weights, const Tensor& sums, const Tensor& logged) {
    const int64_t batch = weights.size(0), steps = weights.size(1), tags = end.size(0);
    const int64_t chunks = std::min(batch, kMostChunks);
    Tensor grads = at::zeros({steps, batch, tags}, incoming.options());
    Tensor for_matrix = at::empty_like(transitions), for_start = at::empty_like(start), for_end = at::empty_like(end);
    AT_DISPATCH_FLOATING_TYPES(incoming.scalar_type(), "statewise_crf_backward", [&] {
        const Chain chain = chain_of<scalar_t>(transitions, start, end);
        std::vector<Sums> parts(static_cast<size_t>(chunks), Sums(chain, steps));
        at::parallel_for(0, chunks, 2, [&](int64_t first, int64_t last) {
            for (int64_t chunk = first; chunk < last; ++chunk) {
                for (int64_t b = batch * chunk / chunks; b < batch * (chunk + 1) / chunks; ++b) {
                    const auto s = sequence_of<scalar_t>(nullptr, lengths, every, weights, sums, tags, b);
                    const auto walk = logged.const_data_ptr<bool>()[b] ? adjoint_in_logs<scalar_t> : adjoint<scalar_t>;
                    walk(s, chain, incoming.const_data_ptr<scalar_t>() + b, grads.data_ptr<scalar_t>() + b * tags,
                         parts[size_t(chunk)]);
                }
            }
        });
        const auto added = [&](auto pick) {
            double total = 0;
            for (const Sums& part : parts) total += pick(part);
            return scalar_t(total);
        };
        for (int64_t i = 0; i < tags; ++i) {
            for (int64_t j = 0; j < tags; ++j) {
                const size_t at = size_t(i * chain.width + j);
                for_matrix.data_ptr<scalar_t>()[i * tags + j] = added([&](const Sums& part) {
                    return part.factors[at] * chain.weights[at] + (part.logged.empty() ? 0.0 : part.logged[at]);
                });
            }
            for_start.data_ptr<scalar_t>()[i] = added([&](const Sums& part) { return part.start[size_t(i)]; });
            for_end.data_ptr<scalar_t>()[i] = added([&](const Sums& part) { return part.end[size_t(i)]; });
        }
    });
    return {grads, for_matrix, for_start, for_end};
}

// Calls work(step, sequence, tag, weight of the step, previous tag or -1, weight of the pair) along given paths.
template <class T, class Work>
void along(const Tensor& tags, const Tensor& lengths, const std::optional<Tensor>& weights,
           const std::optional<Tensor>& pair_weights, Work&& work) {
    const int64_t steps = tags.size(0), batch = tags.size(1);
    const int64_t* path = tags.const_data_ptr<int64_t>();
    const int64_t* until = lengths.const_data_ptr<int64_t>();
    const T* w = weights ? weights->const_data_ptr<T>() : nullptr;
    const T* mu = pair_weights ? pair_weights->const_data_ptr<T>() : nullptr;
    for (int64_t t = 0; t < steps; ++t) {
        for (int64_t b = 0; b < batch; ++b) {
            if (t >= until[b]) continue;
            const int64_t at = t * batch + b;
            const double weight = w ? double(w[at]) : 1.0, before = !t ? 0.0 : w ? double(w[at - batch]) : 1.0;
            const double pair = !t ? 0.0 : mu ? double(mu[at - batch]) : (weight + before) / 2;
            work(t, b, path[at], weight, t ? path[at - batch] : -1, pair);
        }
    }
}

// sum_t w_t E[t, y_t] + sum_t mu_t A[y_t, y_{t+1}] + w_1 start[y_1] + w_L end[y_L] of each sequence; the tags within the
// lengths were checked, and what has weight 0 counts 0.
inline Tensor path_score(const Tensor& emissions, const Tensor& transitions, const Tensor& start, const Tensor& end,
                         const Tensor& tags, const Tensor& lengths, const std::optional<Tensor>& weights,
                         const std::optional<Tensor>& pair_weights) {
    const int64_t batch = emissions.size(1), count = emissions.size(2);
    Tensor out = at::empty({batch}, emissions.options());
    AT_DISPATCH_FLOATING_TYPES(emissions.scalar_type(), "statewise_crf_path_score", [&] {
        Row totals(static_cast<size_t>(batch));
        const scalar_t *e = emissions.const_data_ptr<scalar_t>(), *a = transitions.const_data_ptr<scalar_t>();
        const scalar_t *first = start.const_data_ptr<scalar_t>(), *last = end.const_data_ptr<scalar_t>();
        const int64_t* until = lengths.const_data_ptr<int64_t>();
        along<scalar_t>(tags, lengths, weights, pair_weights,
                        [&](int64_t t, int64_t b, int64_t tag, double weight, int64_t before, double pair) {
                            double& total = totals[size_t(b)];
                            if (weight != 0) {
                                total += weight * double(e[(t * batch + b) * count + tag]);
                                if (t == 0) total += weight * double(first[tag]);
                                if (t == until[b] - 1) total += weight * double(last[tag]);
                            }
                            if (pair != 0) total += pair * double(a[before * count + tag]);
                        });
        std::copy(totals.begin(), totals.end(), out.data_ptr<scalar_t>());
    });
    return out;
}

// The gradients of emissions, transitions, start and end.
inline Four path_score_backward(const Tensor& incoming, const Tensor& transitions, const Tensor& start, const Tensor& end,
                                const Tensor& tags, const Tensor& lengths, const std::optional<Tensor>& weights,
                                const std::optional<Tensor>& pair_weights) {
    const int64_t steps = tags.size(0), batch = tags.size(1), count = end.size(0);
    Tensor for_emissions = at::zeros({steps, batch, count}, incoming.options());
    Tensor for_matrix = at::zeros_like(transitions), for_start = at::zeros_like(start), for_end = at::zeros_like(end);
    AT_DISPATCH_FLOATING_TYPES(incoming.scalar_type(), "statewise_crf_path_score_backward", [&] {
        const scalar_t* g = incoming.const_data_ptr<scalar_t>();
        scalar_t *e = for_emissions.data_ptr<scalar_t>(), *first = for_start.data_ptr<scalar_t>();
        scalar_t *a = for_matrix.data_ptr<scalar_t>(), *last = for_end.data_ptr<scalar_t>();
        const int64_t* until = lengths.const_data_ptr<int64_t>();
        along<scalar_t>(tags, lengths, weights, pair_weights,
                        [&](int64_t t, int64_t b, int64_t tag, double weight, int64_t before, double pair) {
                            const scalar_t grad = scalar_t(weight * double(g[b]));
                            e[(t * batch + b) * count + tag] = grad;
                            if (t == 0) first[tag] += grad;
                            if (t == until[b] - 1) last[tag] += grad;
                            if (t) a[before * count + tag] += scalar_t(pair * double(g[b]));
                        });
    });
    return {for_emissions, for_matrix, for_start, for_end};
}

TORCH_LIBRARY_FRAGMENT(statewise_native, library) {
    library.def(
        "crf_forward(Tensor emissions, Tensor transitions, Tensor start, Tensor end, Tensor lengths, bool every) "
        "-> (Tensor, Tensor, Tensor, Tensor)");
    library.def(
        "crf_backward(Tensor incoming, Tensor transitions, Tensor start, Tensor end, Tensor lengths, bool every, "
        "Tensor weights, Tensor sums, Tensor logged) -> (Tensor, Tensor, Tensor, Tensor)");
    library.def(
        "crf_path_score(Tensor emissions, Tensor transitions, Tensor start, Tensor end, Tensor tags, Tensor lengths, "
        "Tensor? weights, Tensor? pair_weights) -> Tensor");
    library.def(
        "crf_path_score_backward(Tensor incoming, Tensor transitions, Tensor start, Tensor end, Tensor tags, "
        "Tensor lengths, Tensor? weights, Tensor? pair_weights) -> (Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(statewise_native, CPU, library) {
    library.impl("crf_forward", forward);
    library.impl("crf_backward", backward);
    library.impl("crf_path_score", path_score);
    library.impl("crf_path_score_backward", path_score_backward);
}

}  // namespace statewise::crf
