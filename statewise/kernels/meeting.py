"""How the members of a team wait for each other: programs that share the sequences of a group, each with some units."""

import triton
import triton.language as tl


@triton.jit
def arrive(counter):
    """Say that all this program wrote can be read by the others."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def wait(counter, target):
    """Wait until as many arrivals were counted as there must be; one thread looks, for all would crowd the cache."""
    tl.inline_asm_elementwise(
        """
        {
            .reg .pred other, early;
            .reg .u32 mine, seen;
            mov.u32 mine, %tid.x;
            setp.ne.u32 other, mine, 0;
            @other bra done;
        look:
            ld.acquire.gpu.global.u32 seen, [$1];
            setp.lt.u32 early, seen, $2;
            @early bra look;
        done:
            mov.u32 $0, 0;
        }
        """,
        "=r,l,r",
        [counter, target],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
    tl.debug_barrier()


@triton.jit
def meet(counter, target):
    """Arrive, and wait for the others."""
    arrive(counter)
    wait(counter, target)
