// The scores of a readout and their cross entropy in one pass, with all gradients, for many networks of one shape.
//
// The loss of a replica is the mean over its rows of log sum_c exp(s_c) - s_target with s = h W^T + b. Tiles of rows are taken
// through everything while they are in the cache, so no scores are ever written to memory:
//   S = W H^T (turned: a vector is one class of many rows, so a softmax needs no sums within vectors, and few classes waste
//   no lanes), D = (softmax(S) - onehot) / rows, dH = D^T W, dW += D H, db += D 1.
//
// Tiles belong to pieces that depend on the shape alone, and the sums of the pieces are added in order: neither the number of
// threads nor that of replicas changes a digit.
#pragma once


#include <algorithm>
#include <cmath>
#include <limits>

#include "gemm.h"
#include "recurrence.h"
#include "team.h"

namespace STATEWISE::readout {

constexpr int64_t kPadding = -100;  // the target of a row that does not count, as torch has it
constexpr int64_t kTileScores = 8192, kMostRows = 224, kTilesOfPiece = 4, kMostPieces = 32;

// What one replica has and gets; gradients are null where none are wanted.
template <class T>
struct Replica {
    int64_t rows, width, classes;
    const T *states, *weight, *bias;
    const int64_t* targets;
    T *grad_states, *grad_weight, *grad_bias;
};

// What the rows of a piece add up to.
template <class T>
struct Sums {
    double loss = 0;
    List<T> weight, bias;  // (classes, width), and (classes, a vector)

    void clear(const Replica<T>& r) {
        loss = 0;
        weight.assign(size_t(r.grad_states ? r.classes * r.width : 0), T(0));
        bias.assign(size_t(r.grad_states ? r.classes * Vec<T>::width : 0), T(0));
    }
};

// What a thread needs for a tile.
template <class T>
struct Bench {
    List<T> scores;    // (classes, rows of a tile), at last their gradients
    Packed<T> turned, plain;  // the states: H^T and H

    void make_room(int64_t rows, int64_t width) {
        if (turned.n() == rows) return;  // all tiles but the last are alike
        turned = Packed<T>(width, rows);
        plain = Packed<T>(rows, width);
    }
};

// What all pieces of a replica share: the weights, packed.
template <class T>
class Pieces {
public:
    explicit Pieces(const Replica<T>& replica) : r(replica) {
        constexpr int64_t kPanel = Packed<T>::kPanel;
        height_ = std::clamp(kTileScores / r.classes, kPanel, kMostRows) / kPanel * kPanel;
        tiles_ = (r.rows + height_ - 1) / height_;
        counted_ = r.rows - std::count(r.targets, r.targets + r.rows, kPadding);
        inverse_ = T(1) / T(counted_);
        if (r.grad_states) back_ = Packed<T>::plain(r.weight, r.classes, r.width, r.width);
    }

    int64_t count() const { return std::clamp<int64_t>(tiles_ / kTilesOfPiece, 1, kMostPieces); }
    int64_t counted() const { return counted_; }

    void run(int64_t piece, Sums<T>& sums, Bench<T>& bench) const {
        const Share tiles = share(tiles_, int(piece), int(count()));
        sums.clear(r);
        bench.scores.resize(size_t(height_ * r.classes));
        T* scores = bench.scores.data();
        for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
            const int64_t first = tile * height_, rows = std::min(height_, r.rows - first);
            bench.make_room(rows, r.width);
            score(first, rows, bench.turned, scores);
            for (int64_t row = 0; row < rows; row += Lanes::width) {
                sums.loss += row_losses(first + row, std::min(Lanes::width, rows - row), scores + row);
            }
            if (r.grad_states) differentiate(first, rows, scores, bench.plain, sums);
        }
    }

private:
    using Lanes = Vec<T>;
    using V = typename Lanes::type;
    const Replica<T>& r;
    int64_t height_ = 0, tiles_ = 0, counted_ = 0;
    T inverse_ = 0;
    Packed<T> back_;

    // W H^T without the bias. Lanes behind the last row are 0, so that they disturb no sum.
    void score(int64_t first, int64_t rows, Packed<T>& turned, T* scores) const {
        turned.pack_transposed(r.states + first * r.width, r.width, 0, turned.panels());
        gemm(r.weight, r.width, r.classes, turned, 0, turned.panels(), scores, height_, false);
        const int64_t end = (rows + Lanes::width - 1) / Lanes::width * Lanes::width;
        for (int64_t c = 0; rows < end && c < r.classes; ++c) {
            std::fill(scores + c * height_ + rows, scores + c * height_ + end, T(0));
        }
    }

    // The sum of the losses of a vector of rows, whose scores become their gradients.
    double row_losses(int64_t first, int64_t valid, T* scores) const {
        const int64_t* targets = r.targets + first;
        const auto known = [&](int64_t lane) { return targets[lane] >= 0 && targets[lane] < r.classes; };
        V most = Lanes::broadcast(-std::numeric_limits<T>::infinity());
        for (int64_t c = 0; c < r.classes; ++c) {
            const V score = Lanes::load(scores + c * height_) + r.bias[c];
            most = score > most ? score : most;  // not NaN, but the sum below will be
        }
        T of_target[Lanes::width];
        for (int64_t lane = 0; lane < valid; ++lane) {
            of_target[lane] = known(lane) ? scores[targets[lane] * height_ + lane] + r.bias[targets[lane]]
                                          : std::numeric_limits<T>::quiet_NaN();
        }
        V total{};
        for (int64_t c = 0; c < r.classes; ++c) {
            const V power = exp_(Lanes::load(scores + c * height_) + r.bias[c] - most);
            total += power;
            Lanes::store(scores + c * height_, power);
        }
        // Each total is at least 1 and at most the number of classes: the logarithm of a product stands for a vector of them.
        double loss = 0, product = 1;
        V factor{};
        for (int64_t lane = 0; lane < valid; ++lane) {
            if (targets[lane] == kPadding) continue;
            product *= double(total[lane]);
            loss += double(most[lane]) - double(of_target[lane]);
            factor[lane] = known(lane) ? inverse_ : std::numeric_limits<T>::quiet_NaN();
        }
        if (r.grad_states) {
            factor /= total;
            for (int64_t c = 0; c < r.classes; ++c) {
                Lanes::store(scores + c * height_, Lanes::load(scores + c * height_) * factor);
            }
            for (int64_t lane = 0; lane < valid; ++lane) {
                if (known(lane)) scores[targets[lane] * height_ + lane] -= inverse_;
            }
        }
        return loss + std::log(product);
    }

    // From the gradients of the scores to those of all that made them.
    void differentiate(int64_t first, int64_t rows, const T* grads, Packed<T>& states, Sums<T>& sums) const {
        for (int64_t c = 0; c < r.classes; ++c) {
            T* bias = sums.bias.data() + c * Lanes::width;
            V sum = Lanes::load(bias);
            for (int64_t row = 0; row < rows; row += Lanes::width) sum += Lanes::load(grads + c * height_ + row);
            Lanes::store(bias, sum);
        }
        states.pack_plain(r.states + first * r.width, r.width, 0, states.panels());
        gemm(grads, height_, r.classes, states, 0, states.panels(), sums.weight.data(), r.width, true);
        const int64_t blocks = (rows + kRowsMax - 1) / kRowsMax;
        for (int64_t p = 0; p < back_.panels(); ++p) {
            if (back_.few(p)) {
                T* to = r.grad_states + first * r.width + p * Packed<T>::kPanel;
                detail::multiply_few_turned<T>(
                    rows, {grads, height_, r.classes, back_.panel(p), to, r.width, back_.columns(p), false}, 1, r.classes);
                continue;
            }
            for (int64_t block = 0; block < blocks; ++block) {
                const int64_t row = rows * block / blocks, next = rows * (block + 1) / blocks;
                T* to = r.grad_states + (first + row) * r.width + p * Packed<T>::kPanel;
                detail::multiply_panel<T, true>(int(next - row), {grads + row, height_, r.classes, back_.panel(p), to,
                                                                  r.width, back_.columns(p), false});
            }
        }
    }
};

// Adds the sums of a piece to those before it.
template <class T>
void add(const Replica<T>& r, const Sums<T>& sums, double& loss) {
    loss += sums.loss;
    if (!r.grad_states) return;
    for (int64_t i = 0; i < r.classes * r.width; ++i) r.grad_weight[i] += sums.weight[size_t(i)];
    for (int64_t i = 0; i < r.classes * Vec<T>::width; ++i) r.grad_bias[i / Vec<T>::width] += sums.bias[size_t(i)];
}

// The loss of a replica; its gradients begin as 0.
template <class T>
double loss_of(const Replica<T>& r, int threads) {
    const Pieces<T> pieces(r);
    double loss = 0;
    if (threads == 1) {
        Sums<T> sums;
        Bench<T> bench;
        for (int64_t piece = 0; piece < pieces.count(); ++piece) {
            pieces.run(piece, sums, bench);
            add(r, sums, loss);
        }
    } else {
        List<Sums<T>> sums(size_t(pieces.count()));
        run_team(threads, [&](int rank, int size, Barrier&) {
            const Share mine = share(pieces.count(), rank, size);
            Bench<T> bench;
            for (int64_t piece = mine.begin; piece < mine.end; ++piece) pieces.run(piece, sums[size_t(piece)], bench);
        });
        for (const auto& each : sums) add(r, each, loss);
    }
    return loss / double(pieces.counted());
}

template <class T>
int64_t loss_as(const sw_readout& call) {
    T* to = static_cast<T*>(call.losses);
    over_replicas(call.replicas, call.threads, true, [&](int64_t replica, int threads) {
        const Of<T> of{replica};
        const Replica<T> one{call.rows,       call.width,       call.classes,       of(call.states),     of(call.weight),
                             of(call.bias),   Of<int64_t>{replica}(call.targets),   of(call.grad_states), of(call.grad_weight),
                             of(call.grad_bias)};
        to[replica] = T(loss_of(one, threads));
    });
    return 0;
}

inline int64_t loss(const sw_readout& call) { return call.dtype ? loss_as<double>(call) : loss_as<float>(call); }

}  // namespace STATEWISE::readout
