// The cells, one row of the batch at a time: what the Python cells compute, and their derivatives.
//
// A row comes with its input term already summed with the products that are merely added to it; `forward` replaces the
// term by what `backward` needs. All arithmetic is written once, for a whole vector of units and for the rest of a row.
#pragma once

#include <cstdint>

#include "pointwise.h"

namespace STATEWISE {

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
    const T* saved;        // what forward left in `term`
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

// What a row has besides when two members are mixed; the Row itself is the first member's.
template <class T>
struct PairRow {
    const T* first;    // the input terms, without the products
    const T* second;
    const T* product;  // the products that are added to both
    const T* bias;     // and their bias, or null
    T* term;           // out: what backward needs of the second member
    T weight;          // of the first member
};

// The same for a RowGrad.
template <class T>
struct PairGrad {
    const T* saved;   // what forward left of the second member
    T* grad_term;     // out: of its term
    T* grad_product;  // out: of the products that are added
    T weight;
};

// Whether both members count: where one has ended, the other has all the weight, and its gates alone are computed.
template <class T>
bool both_count(T weight) {
    return weight != 0 && weight != 1;
}

enum class Activation { kTanh, kRelu, kSigmoid, kIdentity, kModrelu };

// What a cell is unless it says otherwise.
struct PlainCell {
    static constexpr bool has_memory = false;  // carries c
    static constexpr bool apart = false;       // the product of the last block is kept apart
    static constexpr int gated_from = -1;      // first block whose product takes gate * state; -1: none
    static constexpr bool direct = false;      // the old state reaches the new one past the products
    static constexpr int extra_rows = 0;
    static constexpr bool fused = false;       // has forward_pair and backward_pair
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
    static constexpr bool fused = true;

    struct Reached {
        Vector<T> memory, state;
    };

    // The four numbers of a member that weighs nothing.
    template <class Unit>
    static void clear(const Unit& unit, int64_t h, T* to) {
        for (int block = 0; block < 4; ++block) unit.store(to + block * h, Vector<T>{});
    }

    // From the four terms to the new memory and state; the gates go to `to`.
    template <class Unit>
    static Reached advance(const Unit& unit, int64_t h, const T* extra, Vector<T> old, Vector<T> zi, Vector<T> zf,
                           Vector<T> zg, Vector<T> zo, T* to) {
        if constexpr (peephole) {
            zi += unit.load(extra) * old;
            zf += unit.load(extra + h) * old;
        }
        const auto i = sigmoid(zi), f = sigmoid(zf), g = tanh_(zg);
        const auto c = f * old + i * g;
        if constexpr (peephole) zo += unit.load(extra + 2 * h) * c;
        const auto o = sigmoid(zo);
        unit.store(to, i);
        unit.store(to + h, f);
        unit.store(to + 2 * h, g);
        unit.store(to + 3 * h, o);
        return {c, o * tanh_(c)};
    }

    static void forward(const Row<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto reached =
                advance(unit, h, row.extra, unit.load(row.memory), unit.load(row.term), unit.load(row.term + h),
                        unit.load(row.term + 2 * h), unit.load(row.term + 3 * h), row.term);
            unit.store(row.new_memory, reached.memory);
            unit.store(row.new_state, reached.state);
        });
    }

    static void forward_pair(const Row<T>& row, const PairRow<T>& pair) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto old = unit.load(row.memory);
            Vector<T> added[4];
            for (int block = 0; block < 4; ++block) {
                added[block] = unit.load(pair.product + block * h);
                if (pair.bias) added[block] += unit.load(pair.bias + block * h);
            }
            const auto member = [&](const T* given, T* to) {
                return advance(unit, h, row.extra, old, unit.load(given) + added[0], unit.load(given + h) + added[1],
                               unit.load(given + 2 * h) + added[2], unit.load(given + 3 * h) + added[3], to);
            };
            if (!both_count(pair.weight)) {
                const auto reached = pair.weight == 1 ? member(pair.first, row.term) : member(pair.second, pair.term);
                clear(unit, h, pair.weight == 1 ? pair.term : row.term);
                unit.store(row.new_memory, reached.memory);
                unit.store(row.new_state, reached.state);
                return;
            }
            const auto first = member(pair.first, row.term), second = member(pair.second, pair.term);
            unit.store(row.new_memory, pair.weight * first.memory + (1 - pair.weight) * second.memory);
            unit.store(row.new_state, pair.weight * first.state + (1 - pair.weight) * second.state);
        });
    }

    struct Returned {
        Vector<T> zi, zf, zg, zo, memory;
    };

    // From the gradients of memory and state back to those of the four terms, which go to `to`, and of the old memory.
    template <class Unit>
    static Returned retreat(const Unit& unit, int64_t h, const RowGrad<T>& row, const T* saved, Vector<T> old, Vector<T> c,
                            Vector<T> du, Vector<T> dc, T* to) {
        const auto i = unit.load(saved), f = unit.load(saved + h), g = unit.load(saved + 2 * h);
        const auto o = unit.load(saved + 3 * h);
        const auto squashed = tanh_(c);
        Returned back;
        back.zo = du * squashed * o * (1 - o);
        dc += du * o * (1 - squashed * squashed);
        if constexpr (peephole) dc += back.zo * unit.load(row.extra + 2 * h);
        back.zi = dc * g * i * (1 - i);
        back.zf = dc * old * f * (1 - f);
        back.zg = dc * i * (1 - g * g);
        back.memory = dc * f;
        if constexpr (peephole) {
            back.memory += back.zi * unit.load(row.extra) + back.zf * unit.load(row.extra + h);
            unit.add(row.extra_sum, back.zi * old);
            unit.add(row.extra_sum + h, back.zf * old);
            unit.add(row.extra_sum + 2 * h, back.zo * c);
        }
        unit.store(to, back.zi);
        unit.store(to + h, back.zf);
        unit.store(to + 2 * h, back.zg);
        unit.store(to + 3 * h, back.zo);
        return back;
    }

    static void backward(const RowGrad<T>& row) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto back = retreat(unit, h, row, row.saved, unit.load(row.memory), unit.load(row.new_memory),
                                      unit.load(row.grad_state), unit.load(row.grad_memory), row.grad_term);
            unit.store(row.grad_memory, back.memory);
        });
    }

    // What was kept is the mixed memory, so that of each member is made anew.
    static void backward_pair(const RowGrad<T>& row, const PairGrad<T>& pair) {
        const int64_t h = row.hidden;
        over_units<T>(h, [&](auto unit) {
            const auto old = unit.load(row.memory), du = unit.load(row.grad_state), dc = unit.load(row.grad_memory);
            const auto member = [&](const T* saved, T weight, T* to) {
                const auto c = unit.load(saved + h) * old + unit.load(saved) * unit.load(saved + 2 * h);
                return retreat(unit, h, row, saved, old, c, weight * du, weight * dc, to);
            };
            const auto add = [&](const Returned& back, const Returned& other) {
                unit.store(pair.grad_product, back.zi + other.zi);
                unit.store(pair.grad_product + h, back.zf + other.zf);
                unit.store(pair.grad_product + 2 * h, back.zg + other.zg);
                unit.store(pair.grad_product + 3 * h, back.zo + other.zo);
                unit.store(row.grad_memory, back.memory + other.memory);
            };
            if (both_count(pair.weight)) {
                const auto first = member(row.saved, pair.weight, row.grad_term);
                add(first, member(pair.saved, 1 - pair.weight, pair.grad_term));
            } else if (pair.weight == 1) {
                clear(unit, h, pair.grad_term);
                add(member(row.saved, T(1), row.grad_term), Returned{});
            } else {
                clear(unit, h, row.grad_term);
                add(member(pair.saved, T(1), pair.grad_term), Returned{});
            }
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

}  // namespace STATEWISE
