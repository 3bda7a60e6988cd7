"""The state transforms on tiles of (units, sequences), in their order, and their derivatives.

A chain is a tuple of codes known when the kernel is compiled, and beside it a tuple of tuples of pointers:

==========  =================================================  ====================================================
code        fields                                             pointers
==========  =================================================  ====================================================
MULTIPLY    constant in time                                   draw
ADD         constant in time                                   draw
ZONEOUT     constant in time                                   mask of the state, mask of the memory
CENTROIDS   k, k as a power of two, similarity, hard, soft     centroids, noise, (1 / temperature, sharpness),
            gradient, whether there is noise, whether          before, weights, soft, distance, probabilities,
            probabilities are to be seen                       gradient after, slope
==========  =================================================  ====================================================
"""

import triton
import triton.language as tl

from statewise.kernels import codes
from statewise.kernels.meeting import meet

MULTIPLY = tl.constexpr(codes.MULTIPLY)
ADD = tl.constexpr(codes.ADD)
ZONEOUT = tl.constexpr(codes.ZONEOUT)
CENTROIDS = tl.constexpr(codes.CENTROIDS)

DOT = tl.constexpr(0)
EUCLIDEAN = tl.constexpr(1)


@triton.jit
def _draw(pointer, row, b, live, unit, rep, rows, batch, H: tl.constexpr, CONSTANT: tl.constexpr, OTHER: tl.constexpr):
    """A drawn tile; beyond the state it is ``OTHER``, which changes nothing."""
    first = rep * batch + b if CONSTANT else rep * rows + row
    inside = live[None, :] & (unit < H)[:, None]
    return tl.load(pointer + first[None, :] * H + unit[:, None], mask=inside, other=OTHER)


@triton.jit
def gather(
    pointers, row, b, live, unit, rep, rows, batch, CHAIN: tl.constexpr, MEMORY: tl.constexpr, H: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """All that was drawn for a step, two tiles for each transform, apart from their use so that they come in time."""
    found = ()
    for i in tl.static_range(len(CHAIN)):
        nothing = tl.zeros((1, 1), dtype)
        if CHAIN[i][0] == CENTROIDS:
            if CHAIN[i][6]:
                kk = tl.arange(0, CHAIN[i][2])
                place = (rep * rows + row)[None, :] * CHAIN[i][1] + kk[:, None]
                inside = (kk < CHAIN[i][1])[:, None] & live[None, :]
                found = found + (tl.load(pointers[i][1] + place, mask=inside, other=0.0), nothing)
            else:
                found = found + (nothing, nothing)
        else:
            # Beyond the state there is what changes nothing: one for a product, else zero.
            tile = _draw(
                pointers[i][0], row, b, live, unit, rep, rows, batch, H, CHAIN[i][1],
                1.0 if CHAIN[i][0] == MULTIPLY else 0.0,
            )  # fmt: skip
            if CHAIN[i][0] == ZONEOUT and MEMORY:
                mask = _draw(pointers[i][1], row, b, live, unit, rep, rows, batch, H, CHAIN[i][1], 0.0)
                found = found + (tile, mask)
            else:
                found = found + (tile, nothing)
    return found


@triton.jit
def _across(part, PARTIAL, BAR, target, group, team, UNITS: tl.constexpr):
    """The sum over all members of a team of what each has; there is nothing to add where one has all units."""
    total = part
    if UNITS > 1:
        width: tl.constexpr = part.shape[0] * part.shape[1]
        place = tl.arange(0, part.shape[0])[:, None] * part.shape[1] + tl.arange(0, part.shape[1])[None, :]
        tl.store(PARTIAL + (group * UNITS + team) * width + place, part)
        meet(BAR, target)
        total = tl.zeros_like(part)
        for member in tl.static_range(UNITS):
            total += tl.load(PARTIAL + (group * UNITS + member) * width + place, cache_modifier=".cg")
    return total


@triton.jit
def _inner(S, x, ROW: tl.constexpr, PRECISION: tl.constexpr):
    """``S x`` for centroids (k, units) and a tile (units, sequences)."""
    if ROW:
        found = tl.sum(S.to(x.dtype) * tl.trans(x), axis=1)[:, None]
    else:
        found = tl.dot(S, x.to(S.dtype), input_precision=PRECISION)
    return found


@triton.jit
def _outer(S, w, dtype: tl.constexpr, ROW: tl.constexpr, PRECISION: tl.constexpr):
    """``S.T w`` for centroids (k, units) and weights (k, sequences)."""
    if ROW:
        found = tl.sum(S.to(dtype) * w, axis=0)[:, None]
    else:
        found = tl.dot(tl.trans(S), w.to(S.dtype), input_precision=PRECISION).to(dtype)
    return found


@triton.jit
def _squares(C, u, unit, k, kk, H: tl.constexpr, ROW: tl.constexpr, S):
    """``sum (u - s)^2`` over the units at hand, for every centroid; the direct form, exact near zero."""
    inside = (unit < H)[:, None]
    if ROW:
        row = tl.where(tl.trans(inside), S.to(u.dtype) - tl.trans(u), 0.0)
        found = tl.sum(row * row, axis=1)[:, None]
    else:
        found = tl.zeros((kk.shape[0], u.shape[1]), u.dtype)
        for one in range(k):
            centroid = tl.load(C + one * H + unit, mask=unit < H, other=0.0).to(u.dtype)
            difference = tl.where(inside, u - centroid[:, None], 0.0)
            found = tl.where((kk == one)[:, None], tl.sum(difference * difference, axis=0)[None, :], found)
    return found


@triton.jit
def _softmax(x):
    raised = tl.exp(x - tl.max(x, axis=0)[None, :])
    return raised / tl.sum(raised, axis=0)[None, :]


@triton.jit
def _centroids(
    u, noise, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
    CHAIN: tl.constexpr, AT: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, UNITS: tl.constexpr, ROW: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The state drawn to the centroids; saves what the way back needs."""
    k: tl.constexpr = CHAIN[AT][1]
    kk = tl.arange(0, CHAIN[AT][2])
    known = (kk < k)[:, None]
    C = pointers[0] + rep * k * H
    S = tl.load(C + kk[:, None] * H + unit[None, :], mask=known & (unit < H)[None, :], other=0.0)
    if CHAIN[AT][3] == DOT:
        part = _inner(S, u, ROW, PRECISION)
    else:
        part = _squares(C, u, unit, k, kk, H, ROW, S)
    z = _across(part, PARTIAL, BAR, target, group, team, UNITS).to(u.dtype)
    place = (rep * rows + row)[None, :] * k + kk[:, None]
    inside = known & live[None, :]
    mine = inside & (team == 0)
    if CHAIN[AT][3] == EUCLIDEAN:
        z = tl.sqrt(z)
        tl.store(pointers[6] + place, z, mask=mine)
    logits = z * tl.load(pointers[2]).to(u.dtype)
    logits = tl.where(known, logits if CHAIN[AT][3] == DOT else -logits, float("-inf"))
    disturbed = logits
    if CHAIN[AT][6]:
        disturbed = logits + noise
    if CHAIN[AT][5]:
        soft = _softmax(disturbed * tl.load(pointers[2] + 1).to(u.dtype))
    else:
        soft = _softmax(logits)
    weights = soft
    if CHAIN[AT][4]:
        weights = (kk[:, None] == tl.argmax(disturbed, axis=0)[None, :]).to(u.dtype)
        tl.store(pointers[4] + place, weights, mask=mine)
    tl.store(pointers[5] + place, soft, mask=mine)
    if CHAIN[AT][7]:
        tl.store(pointers[7] + place, _softmax(logits), mask=mine)
    saved = (rep * rows + row)[None, :] * Hp + unit[:, None]
    tl.store(pointers[3] + saved, u, mask=live[None, :] & (unit < Hp)[:, None])
    return _outer(S, weights, u.dtype, ROW, PRECISION)


@triton.jit
def _centroids_back(
    dh, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
    CHAIN: tl.constexpr, AT: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, UNITS: tl.constexpr, ROW: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradient before the centroids; leaves that after them, and the slope of the similarities."""
    k: tl.constexpr = CHAIN[AT][1]
    kk = tl.arange(0, CHAIN[AT][2])
    known = (kk < k)[:, None]
    saved = (rep * rows + row)[None, :] * Hp + unit[:, None]
    own = live[None, :] & (unit < Hp)[:, None]
    tl.store(pointers[8] + saved, dh, mask=own)
    before = tl.zeros_like(dh)
    if CHAIN[AT][5]:
        C = pointers[0] + rep * k * H
        S = tl.load(C + kk[:, None] * H + unit[None, :], mask=known & (unit < H)[None, :], other=0.0)
        place = (rep * rows + row)[None, :] * k + kk[:, None]
        inside = known & live[None, :]
        soft = tl.load(pointers[5] + place, mask=inside, other=0.0).to(dh.dtype)
        grad = _across(_inner(S, dh, ROW, PRECISION), PARTIAL, BAR, target, group, team, UNITS).to(dh.dtype)
        scale = tl.load(pointers[2]).to(dh.dtype) * tl.load(pointers[2] + 1).to(dh.dtype)
        slope = soft * (grad - tl.sum(soft * grad, axis=0)[None, :]) * scale
        if CHAIN[AT][3] == EUCLIDEAN:
            distance = tl.load(pointers[6] + place, mask=inside, other=0.0).to(dh.dtype)
            slope = tl.where(distance > 0, slope / tl.where(distance > 0, distance, 1.0), 0.0)
        elif CHAIN[AT][3] != DOT:
            slope = 2.0 * slope
        slope = tl.where(inside, slope, 0.0)
        tl.store(pointers[9] + place, slope, mask=inside & (team == 0))
        before = _outer(S, slope, dh.dtype, ROW, PRECISION)
        if CHAIN[AT][3] != DOT:
            u = tl.load(pointers[3] + saved, mask=own, other=0.0).to(dh.dtype)
            before = before - tl.sum(slope, axis=0)[None, :] * u
    return before


@triton.jit
def change(
    h, c, old_h, old_c, drawn, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
    CHAIN: tl.constexpr, MEMORY: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, UNITS: tl.constexpr,
    ROW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """State and memory after all transforms; ``target`` grows by what each meeting of the team adds."""
    for i in tl.static_range(len(CHAIN)):
        if CHAIN[i][0] == MULTIPLY:
            h = h * drawn[2 * i].to(h.dtype)
        elif CHAIN[i][0] == ADD:
            h = h + drawn[2 * i].to(h.dtype)
        elif CHAIN[i][0] == ZONEOUT:
            h = drawn[2 * i].to(h.dtype) * old_h + (1.0 - drawn[2 * i].to(h.dtype)) * h
            if MEMORY:
                c = drawn[2 * i + 1].to(h.dtype) * old_c + (1.0 - drawn[2 * i + 1].to(h.dtype)) * c
        else:
            target += UNITS
            h = _centroids(
                h, drawn[2 * i].to(h.dtype), pointers[i], row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
                CHAIN, i, H, Hp, UNITS, ROW, PRECISION,
            )  # fmt: skip
    return h, c, target


@triton.jit
def change_back(
    dh, dc, drawn, pointers, row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
    CHAIN: tl.constexpr, MEMORY: tl.constexpr, H: tl.constexpr, Hp: tl.constexpr, UNITS: tl.constexpr,
    ROW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients before all transforms, then what flows to the old state and memory past the cell."""
    to_h = tl.zeros_like(dh)
    to_c = tl.zeros_like(dh)
    for j in tl.static_range(len(CHAIN) - 1, -1, -1):
        if CHAIN[j][0] == MULTIPLY:
            dh = dh * drawn[2 * j].to(dh.dtype)
        elif CHAIN[j][0] == ZONEOUT:
            to_h += drawn[2 * j].to(dh.dtype) * dh
            dh = dh - drawn[2 * j].to(dh.dtype) * dh
            if MEMORY:
                to_c += drawn[2 * j + 1].to(dh.dtype) * dc
                dc = dc - drawn[2 * j + 1].to(dh.dtype) * dc
        elif CHAIN[j][0] == CENTROIDS:
            if CHAIN[j][5]:
                target += UNITS
            dh = _centroids_back(
                dh, pointers[j], row, live, unit, rep, rows, PARTIAL, BAR, target, group, team,
                CHAIN, j, H, Hp, UNITS, ROW, PRECISION,
            )  # fmt: skip
    return dh, dc, to_h, to_c, target
