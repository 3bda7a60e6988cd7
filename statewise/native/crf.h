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


#include <algorithm>
#include <cmath>
#include <limits>

#include "interface.h"
#include "pointwise.h"
#include "team.h"

namespace STATEWISE::crf {

using Lanes = Vec<double>;
using V = Lanes::type;
using Row = List<double>;

constexpr double kNever = -std::numeric_limits<double>::infinity();
// Weights beside the greatest of their kind. While the possible ones keep above these bounds, no product underflows.
constexpr double kLeastWeight = 1e-150, kLeastTransition = 1e-120, kLeastNormal = 1e-300;
constexpr int64_t kMostChunks = 16;  // of a batch; chunks, not threads, have sums, so threads change no digit

// Rows are whole vectors of any instruction set.
inline int64_t padded(int64_t tags) { return (tags + 7) / 8 * 8; }

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
Chain chain_of(const sw_crf& call) {
    return {static_cast<const T*>(call.transitions), static_cast<const T*>(call.start), static_cast<const T*>(call.end),
            call.tags};
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
            const auto [most, total] = exponentials(before, chain, j);
            for (int64_t lane = 0; lane < Lanes::width; ++lane) out[j + lane] = std::log(total[lane]) + most[lane];
        }
    }

    static double log_ending(const double* alpha, const Chain& chain) {
        const auto [most, total] = ending_exponentials(alpha, chain);
        return std::log(total) + most;
    }

    // A sum of exponentials as its greatest exponent, 0 if there is none, and the sum of all beside it. The way back divides by
    // the sum: next to an exponent of 1e17 its logarithm would be lost, and the shares would not add up to 1.
    template <class Number>
    struct Exponentials {
        Number most, total;
    };

    // Of before[i] + A[i, j], for the columns from j on.
    static Exponentials<V> exponentials(const double* before, const Chain& chain, int64_t j) {
        V most = Lanes::broadcast(kNever), total = {};
        const double* column = chain.transitions.data() + j;
        for (int64_t i = 0; i < chain.tags; ++i) {
            const V score = before[i] + Lanes::load(column + i * chain.width);
            most = score > most ? score : most;
        }
        most = most == Lanes::broadcast(kNever) ? V{} : most;
        for (int64_t i = 0; i < chain.tags; ++i) total += exp_(before[i] + Lanes::load(column + i * chain.width) - most);
        return {most, total};
    }

    static Exponentials<double> ending_exponentials(const double* alpha, const Chain& chain) {
        double most = kNever, total = 0;
        for (int64_t j = 0; j < chain.tags; ++j) most = std::max(most, alpha[j] + chain.end[size_t(j)]);
        if (most == kNever) most = 0;
        for (int64_t j = 0; j < chain.tags; ++j) total += std::exp(alpha[j] + chain.end[size_t(j)] - most);
        return {most, total};
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
            for (int64_t j = 0; j < width; j += Lanes::width) {
                const auto [most, total] = Sequence<T>::exponentials(alpha, chain, j);
                const V factor = total == V{} ? V{} : Lanes::load(grad + j) / total;
                for (int64_t i = 0; i < chain.tags; ++i) {
                    double* row = sums.logged.data() + i * width + j;
                    const V score = alpha[i] + Lanes::load(chain.transitions.data() + i * width + j);
                    const V flow = exp_(score - most) * factor;
                    Lanes::store(row, Lanes::load(row) + flow);
                    carried[i] += total_of(flow);
                }
            }
        }
        const double g = s.wanted(t) ? double(incoming[s.place(t)]) : 0.0;
        const auto [most, total] = Sequence<T>::ending_exponentials(alpha, chain);
        for (int64_t j = 0; j < width; ++j) {
            const double last = g == 0 || total == 0 ? 0 : g * (std::exp(alpha[j] + chain.end[size_t(j)] - most) / total);
            sums.end[size_t(j)] += last;
            grad[j] = last + carried[j];
        }
        for (int64_t j = 0; j < chain.tags; ++j) grads[t * s.stride + j] = T(grad[j]);
    }
    sums.finish(chain);
}

template <class T>
Sequence<T> sequence_of(const sw_crf& call, int64_t b) {
    const int64_t row = b * call.steps * padded(call.tags);
    const T* emissions = static_cast<const T*>(call.emissions);
    return {emissions ? emissions + b * call.tags : nullptr, call.batch * call.tags, call.lengths[b], call.batch,
            call.every != 0, call.row_weights + row, call.row_sums + row};
}

// log Z of every prefix, (steps, batch), which begins as 0, or of the whole alone, (batch,); then the rows that backward needs,
// and which sequences were walked in logarithms.
template <class T>
int64_t forward_as(const sw_crf& call) {
    const Chain chain = chain_of<T>(call);
    run_team(int(std::min(call.threads, std::max<int64_t>(1, call.batch / 4))), [&](int rank, int size, Barrier&) {
        const Share mine = share(call.batch, rank, size);
        Row scores(size_t(chain.width), kNever);
        for (int64_t b = mine.begin; b < mine.end; ++b) {
            const auto s = sequence_of<T>(call, b);
            T* to = static_cast<T*>(call.out) + b;
            const bool served = chain.serves && s.forward(chain, to, scores.data());
            if (!served) s.forward_in_logs(chain, to, scores.data());
            call.logged[b] = !served;
        }
    });
    return 0;
}

inline int64_t forward(const sw_crf& call) { return call.dtype ? forward_as<double>(call) : forward_as<float>(call); }

// The gradients of emissions, which begin as 0, of transitions, start and end from those of what forward gave.
template <class T>
int64_t backward_as(const sw_crf& call) {
    const int64_t batch = call.batch, tags = call.tags, chunks = std::min(batch, kMostChunks);
    const Chain chain = chain_of<T>(call);
    List<Sums> parts(size_t(chunks), Sums(chain, call.steps));
    run_team(int(std::min(call.threads, std::max<int64_t>(1, chunks / 2))), [&](int rank, int size, Barrier&) {
        const Share mine = share(chunks, rank, size);
        for (int64_t chunk = mine.begin; chunk < mine.end; ++chunk) {
            for (int64_t b = batch * chunk / chunks; b < batch * (chunk + 1) / chunks; ++b) {
                const auto walk = call.logged[b] ? adjoint_in_logs<T> : adjoint<T>;
                walk(sequence_of<T>(call, b), chain, static_cast<const T*>(call.incoming) + b,
                     static_cast<T*>(call.grad_emissions) + b * tags, parts[size_t(chunk)]);
            }
        }
    });
    const auto added = [&](auto pick) {
        double total = 0;
        for (const Sums& part : parts) total += pick(part);
        return T(total);
    };
    T *for_matrix = static_cast<T*>(call.grad_transitions), *for_start = static_cast<T*>(call.grad_start);
    T* for_end = static_cast<T*>(call.grad_end);
    for (int64_t i = 0; i < tags; ++i) {
        for (int64_t j = 0; j < tags; ++j) {
            const size_t at = size_t(i * chain.width + j);
            for_matrix[i * tags + j] = added([&](const Sums& part) {
                return part.factors[at] * chain.weights[at] + (part.logged.empty() ? 0.0 : part.logged[at]);
            });
        }
        for_start[i] = added([&](const Sums& part) { return part.start[size_t(i)]; });
        for_end[i] = added([&](const Sums& part) { return part.end[size_t(i)]; });
    }
    return 0;
}

inline int64_t backward(const sw_crf& call) { return call.dtype ? backward_as<double>(call) : backward_as<float>(call); }

// Calls work(step, sequence, tag, weight of the step, previous tag or -1, weight of the pair) along given paths.
template <class T, class Work>
void along(const sw_crf& call, Work&& work) {
    const int64_t batch = call.batch;
    const T *w = static_cast<const T*>(call.weights), *mu = static_cast<const T*>(call.pair_weights);
    for (int64_t t = 0; t < call.steps; ++t) {
        for (int64_t b = 0; b < batch; ++b) {
            if (t >= call.lengths[b]) continue;
            const int64_t at = t * batch + b;
            const double weight = w ? double(w[at]) : 1.0, before = !t ? 0.0 : w ? double(w[at - batch]) : 1.0;
            const double pair = !t ? 0.0 : mu ? double(mu[at - batch]) : (weight + before) / 2;
            work(t, b, call.path[at], weight, t ? call.path[at - batch] : -1, pair);
        }
    }
}

// sum_t w_t E[t, y_t] + sum_t mu_t A[y_t, y_{t+1}] + w_1 start[y_1] + w_L end[y_L] of each sequence; the tags within the
// lengths were checked, and what has weight 0 counts 0.
template <class T>
int64_t score_as(const sw_crf& call) {
    const int64_t batch = call.batch, count = call.tags;
    Row totals(static_cast<size_t>(batch));
    const T *e = static_cast<const T*>(call.emissions), *a = static_cast<const T*>(call.transitions);
    const T *first = static_cast<const T*>(call.start), *last = static_cast<const T*>(call.end);
    along<T>(call, [&](int64_t t, int64_t b, int64_t tag, double weight, int64_t before, double pair) {
        double& total = totals[size_t(b)];
        if (weight != 0) {
            total += weight * double(e[(t * batch + b) * count + tag]);
            if (t == 0) total += weight * double(first[tag]);
            if (t == call.lengths[b] - 1) total += weight * double(last[tag]);
        }
        if (pair != 0) total += pair * double(a[before * count + tag]);
    });
    for (int64_t b = 0; b < batch; ++b) static_cast<T*>(call.out)[b] = T(totals[size_t(b)]);
    return 0;
}

inline int64_t score(const sw_crf& call) { return call.dtype ? score_as<double>(call) : score_as<float>(call); }

// The gradients of emissions, transitions, start and end, which begin as 0.
template <class T>
int64_t score_backward_as(const sw_crf& call) {
    const int64_t batch = call.batch, count = call.tags;
    const T* g = static_cast<const T*>(call.incoming);
    T *e = static_cast<T*>(call.grad_emissions), *a = static_cast<T*>(call.grad_transitions);
    T *first = static_cast<T*>(call.grad_start), *last = static_cast<T*>(call.grad_end);
    along<T>(call, [&](int64_t t, int64_t b, int64_t tag, double weight, int64_t before, double pair) {
        const T grad = T(weight * double(g[b]));
        e[(t * batch + b) * count + tag] = grad;
        if (t == 0) first[tag] += grad;
        if (t == call.lengths[b] - 1) last[tag] += grad;
        if (t) a[before * count + tag] += T(pair * double(g[b]));
    });
    return 0;
}

inline int64_t score_backward(const sw_crf& call) {
    return call.dtype ? score_backward_as<double>(call) : score_backward_as<float>(call);
}

}  // namespace STATEWISE::crf
