// The cells, one row of the batch at a time: what the Python cells compute, and their derivatives.
//
// A row comes with its input term already summed with the products that are merely added to it; `forward` replaces the
// term by what `backward` needs, and `backward` replaces that by the term's gradient. All arithmetic is written once, for a whole vector of units and for the rest of a row.
#pragma once

#include <cstdint>

#include "pointwise.h"

namespace statewise {

// A full vector of units beginning at `at`.
template <class T>
struct Full {
    int64_t at;
    Vector<T> load(const T* from) const { return Vec<T>::load(from + at); }
    void store(T* to, Vector<T> value) const { Vec<T>::store(to + at, value); }
    void add(T* to, Vector<T> value) const { store(to, load(to) + value); }
};

// The last units of a row.
template <class T>
struct Part {
    int64_t at, count;
    Vector<T> load(const T* from) const { return Vec<T>::load(from + at, count); }
    void store(T* to, Vector<T> value) const { Vec<T>::store(to + at, value, count); }
    void add(T* to, Vector<T> value) const { store(to, load(to) + value); }
};

template <class T, class Body>
inline void over_units(int64_t hidden, Body&& body) {
    int64_t at = 0;
    for (; at + Vec<T>::width <= hidden; at += Vec<T>::width) body(Full<T>{at});
    if (at < hidden) body(Part<T>{at, hidden - at});
}

// One row of one step, forward.
template <class T>
struct Row {
    int64_t hidden;
    T* term;               // in: input term plus added products, block by block; out: what backward needs
    T* apart;              // the product that is kept apart (GRU's candidate, RAC), or null
    const T* apart_bias;   // its bias, or null
    T apart_offset;        // 1 where a circuit starts, else 0
    const T* extra;        // the cell's own parameters
    const T* state;        // of the step before
    const T* memory;
    T* gated;              // gate times state, for the cells whose candidate needs it
    T* new_state;
    T* new_memory;
};

// One row of one step, backward.
template <class T>
struct RowGrad {
    int64_t hidden;
    const T* saved;        // what forward left in `term`; `grad_term` is the same memory
    const T* apart;
    const T* extra;
    const T* state;
    const T* memory;
    const T* new_memory;
    T* grad_state;         // of what the cell gave; free for use afterwards
    T* grad_memory;        // in: of the memory the cell gave; out: of the old memory
    T* grad_term;
    T* grad_apart;
    T* direct;             // += the gradient of the old state that does not pass through a product
    const T* through;      // the gradient of `gated`
    T* extra_sum;          // += the gradient of the cell's own parameters
};

enum class Activation { kTanh, kRelu, kSigmoid, kIdentity, kModrelu };

// What a cell is unless it says otherwise.
struct PlainCell {
    static constexpr bool has_memory = false;  // carries c
    static constexpr bool apart = false;       // the product of the last block is kept apart
    static constexpr int gated_from = -1;      // first block whose product takes gate * state; -1: none
    static constexpr bool direct = false;      // the old state reaches the new one past the products
    static constexpr int extra_rows = 0;
};

template <class T, Activation kind>
struct Elman : PlainCell {
    static constexpr int blocks = 1;
    static constexpr int extra_rows = kind == Activation::kModrelu ? 1 : 0;

    static void forward(const Row<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto z = unit.load(row.term);
            auto u = z;
            if constexpr (kind == Activation::kTanh) u = tanh_(z);
            if constexpr (kind == Activation::kSigmoid) u = sigmoid(z);
            if constexpr (kind == Activation::kRelu) u = z < 0 ? T(0) - decltype(z){} : z;
            if constexpr (kind == Activation::kModrelu) {
                const auto shifted = (z < 0 ? -z : z) + unit.load(row.extra);
                const auto size = shifted < 0 ? T(0) - decltype(z){} : shifted;
                u = z < 0 ? -size : (z > 0 ? size : T(0) * z);
            }
            unit.store(row.term, kind == Activation::kModrelu ? z : u);
            unit.store(row.new_state, u);
        });
    }

    static void backward(const RowGrad<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto s = unit.load(row.saved);
            auto dz = unit.load(row.grad_state);
            const auto zero = T(0) - decltype(s){};
            if constexpr (kind == Activation::kTanh) dz = dz * (1 - s * s);
            if constexpr (kind == Activation::kSigmoid) dz = dz * s * (1 - s);
            if constexpr (kind == Activation::kRelu) dz = s > 0 ? dz : zero;
            if constexpr (kind == Activation::kModrelu) {
                const auto size = s < 0 ? -s : s;
                dz = size + unit.load(row.extra) > 0 ? dz : zero;
                dz = s != 0 ? dz : zero;
                unit.add(row.extra_sum, s < 0 ? -dz : dz);
            }
            unit.store(row.grad_term, dz);
        });
    }
};

template <class T, bool peephole>
struct Memory : PlainCell {
    static constexpr int blocks = 4;
    static constexpr bool has_memory = true;
    static constexpr int extra_rows = peephole ? 3 : 0;

    static void forward(const Row<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            auto zi = unit.load(row.term), zf = unit.load(row.term + h), zo = unit.load(row.term + 3 * h);
            const auto old = unit.load(row.memory);
            if constexpr (peephole) {
                zi += unit.load(row.extra) * old;
                zf += unit.load(row.extra + h) * old;
            }
            const auto i = sigmoid(zi), f = sigmoid(zf), g = tanh_(unit.load(row.term + 2 * h));
            const auto c = f * old + i * g;
            if constexpr (peephole) zo += unit.load(row.extra + 2 * h) * c;
            const auto o = sigmoid(zo);
            unit.store(row.term, i);
            unit.store(row.term + h, f);
            unit.store(row.term + 2 * h, g);
            unit.store(row.term + 3 * h, o);
            unit.store(row.new_memory, c);
            unit.store(row.new_state, o * tanh_(c));
        });
    }

    static void backward(const RowGrad<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto i = unit.load(row.saved), f = unit.load(row.saved + h);
            const auto g = unit.load(row.saved + 2 * h), o = unit.load(row.saved + 3 * h);
            const auto old = unit.load(row.memory), c = unit.load(row.new_memory), du = unit.load(row.grad_state);
            const auto squashed = tanh_(c);
            const auto dzo = du * squashed * o * (1 - o);
            auto dc = unit.load(row.grad_memory) + du * o * (1 - squashed * squashed);
            if constexpr (peephole) dc += dzo * unit.load(row.extra + 2 * h);
            const auto dzi = dc * g * i * (1 - i), dzf = dc * old * f * (1 - f);
            auto to_old = dc * f;
            if constexpr (peephole) {
                to_old += dzi * unit.load(row.extra) + dzf * unit.load(row.extra + h);
                unit.add(row.extra_sum, dzi * old);
                unit.add(row.extra_sum + h, dzf * old);
                unit.add(row.extra_sum + 2 * h, dzo * c);
            }
            unit.store(row.grad_term, dzi);
            unit.store(row.grad_term + h, dzf);
            unit.store(row.grad_term + 2 * h, dc * i * (1 - g * g));
            unit.store(row.grad_term + 3 * h, dzo);
            unit.store(row.grad_memory, to_old);
        });
    }
};

// The reset gate acts after the product, as in torch.
template <class T>
struct Gru : PlainCell {
    static constexpr int blocks = 3;
    static constexpr bool apart = true;
    static constexpr bool direct = true;

    static void forward(const Row<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto r = sigmoid(unit.load(row.term)), z = sigmoid(unit.load(row.term + h));
            auto product = unit.load(row.apart);
            if (row.apart_bias) product += unit.load(row.apart_bias);
            const auto n = tanh_(unit.load(row.term + 2 * h) + r * product);
            unit.store(row.term, r);
            unit.store(row.term + h, z);
            unit.store(row.term + 2 * h, n);
            unit.store(row.apart, product);
            unit.store(row.new_state, n + z * (unit.load(row.state) - n));
        });
    }

    static void backward(const RowGrad<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto r = unit.load(row.saved), z = unit.load(row.saved + h), n = unit.load(row.saved + 2 * h);
            const auto du = unit.load(row.grad_state);
            const auto dn = du * (1 - z) * (1 - n * n);
            unit.store(row.grad_term, dn * unit.load(row.apart) * r * (1 - r));
            unit.store(row.grad_term + h, du * (unit.load(row.state) - n) * z * (1 - z));
            unit.store(row.grad_term + 2 * h, dn);
            unit.store(row.grad_apart, dn * r);
            unit.add(row.direct, du * z);
        });
    }
};

// The reset gate acts before the product: `open` makes gate * state, whose product `forward` finds in the last block.
template <class T>
struct ResetBeforeGru : PlainCell {
    static constexpr int blocks = 3;
    static constexpr int gated_from = 2;
    static constexpr bool direct = true;

    static void open(const Row<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto r = sigmoid(unit.load(row.term));
            unit.store(row.term, r);
            unit.store(row.gated, r * unit.load(row.state));
        });
    }

    static void forward(const Row<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto z = sigmoid(unit.load(row.term + h)), n = tanh_(unit.load(row.term + 2 * h));
            unit.store(row.term + h, z);
            unit.store(row.term + 2 * h, n);
            unit.store(row.new_state, n + z * (unit.load(row.state) - n));
        });
    }

    // First half: the gradient that goes into the product with gate * state.
    static void backward(const RowGrad<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto z = unit.load(row.saved + h), n = unit.load(row.saved + 2 * h);
            const auto du = unit.load(row.grad_state);
            unit.store(row.grad_term + h, du * (unit.load(row.state) - n) * z * (1 - z));
            unit.store(row.grad_term + 2 * h, du * (1 - z) * (1 - n * n));
            unit.add(row.direct, du * z);
        });
    }

    // Second half, with the gradient of gate * state.
    static void close(const RowGrad<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto r = unit.load(row.saved), through = unit.load(row.through);
            unit.store(row.grad_term, through * unit.load(row.state) * r * (1 - r));
            unit.add(row.direct, through * r);
        });
    }
};

template <class T>
struct Mgu : PlainCell {
    static constexpr int blocks = 2;
    static constexpr int gated_from = 1;
    static constexpr bool direct = true;

    static void open(const Row<T>& row) { ResetBeforeGru<T>::open(row); }

    static void forward(const Row<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto r = unit.load(row.term), n = tanh_(unit.load(row.term + h)), old = unit.load(row.state);
            unit.store(row.term + h, n);
            unit.store(row.new_state, old + r * (n - old));
        });
    }

    static void backward(const RowGrad<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto r = unit.load(row.saved), n = unit.load(row.saved + h), du = unit.load(row.grad_state);
            unit.store(row.grad_term + h, du * r * (1 - n * n));
            unit.add(row.direct, du * (1 - r));
            unit.store(row.grad_state, du * (n - unit.load(row.state)));  // n is gone by the time of `close`
        });
    }

    static void close(const RowGrad<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto r = unit.load(row.saved), old = unit.load(row.state), through = unit.load(row.through);
            unit.store(row.grad_term, (unit.load(row.grad_state) + through * old) * r * (1 - r));
            unit.add(row.direct, through * r);
        });
    }
};

template <class T>
struct Rac : PlainCell {
    static constexpr int blocks = 1;
    static constexpr bool apart = true;

    static void forward(const Row<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            auto product = unit.load(row.apart) + row.apart_offset;
            if (row.apart_bias) product += unit.load(row.apart_bias);
            unit.store(row.apart, product);
            unit.store(row.new_state, unit.load(row.term) * product);
        });
    }

    static void backward(const RowGrad<T>& row) {
        over_units<T>(row.hidden, [&](auto unit) {
            const auto du = unit.load(row.grad_state), term = unit.load(row.saved), product = unit.load(row.apart);
            unit.store(row.grad_term, du * product);
            unit.store(row.grad_apart, du * term);
        });
    }
};

}  // namespace statewise
