"""The texts of ``ddgemm_nn``, ``nt`` and ``tt``, with and without fused multiply-add, written
here.

A texel of double-doubles is one number, so these kernels differ from ``ddgemm_tn`` only in where a
step of k fetches from: along the rows of a matrix that is stored with k across, down its columns
where k runs down. The arithmetic, two macros, is that of ``ddgemm_tn_fma.il`` and
``ddgemm_tn_nofma.il``, and is taken from there.
"""

import textwrap
from functools import partial
from importlib.resources import files

WIDTH = 120  # of a comment

INTRODUCTION = (
    "DDGEMM {pair}, {how} fused multiply-add: C = alpha * {a} * {b} + beta * C in double-double,"
    " 2 x 2 elements of C per work-item."
)
HEAD = """\
;
; A double-double is an unevaluated sum of two doubles, about 106 bits: one texel, high part in xy, low part in zw. A
; is stored {a_shape} and B {b_shape}. A step of k reads two numbers of A and two of B and needs four products and four sums. A
; texel is one number, so the transposes differ in coordinates only: what changes is which fetches of a quad fall into
; one line of the cache.
;
; Launch: resource 0 = A and resource 1 = B, row-major textures of 128-bit texels; g[] = C, row-major 128-bit elements.
;   cb0[0] = (alpha, beta, k as a float, row stride of C in 128-bit elements as an integer), single precision
;   cb0[1] = (alpha, beta) as doubles       cb0[2], cb0[3] = alpha, beta as double-doubles (high, low)
;   cb0[4] = (all ones if beta is not zero, block columns of a compute launch, unused, unused)
; Domain: (n / 2, m / 2) pixels; pixel (x, y) computes 2 rows from row 2y and 2 columns from column 2x. One step of k
; per turn.
"""  # noqa: E501 (the lines of an .il file)
START = """\
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_resource_id(1)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[5]
dcl_literal l0, 2.0, -1.0, 0.0, 1.0

; r0 = ({a_line} of A, {b_line} of B, k): pixel centres lie at .5, so 2 * (y + .5) - 1 = 2y
mad r0.xy, vWinCoord0.yx, l0.x, l0.y
mov r0.z, l0.z
; r10, r11 = first row of the block, r12, r13 = second row
mov r10, l0.z
mov r11, l0.z
mov r12, l0.z
mov r13, l0.z

whileloop
    ge r1.x, r0.z, cb0[0].z
    break_logicalnz r1.x
    ; r2, r3: {a_fetched}; r4, r5: {b_fetched}
"""
FUSED = """\
    mcall(2) (r20, r21), (r2, r2, r4, r5)
    mcall(1) (r10, r11), (r10, r11, r20, r21)
    mcall(2) (r20, r21), (r3, r3, r4, r5)
    mcall(1) (r12, r13), (r12, r13, r20, r21)
"""
UNFUSED = """\
    mcall(2) (r20, r21), (r2, r2, r4, r5)
    mcall(2) (r22, r23), (r3, r3, r4, r5)
    mcall(1) (r10, r11), (r10, r11, r20, r21)
    mcall(1) (r12, r13), (r12, r13, r22, r23)
"""
END = """\
    add r0.z, r0.z, l0.w
endloop

; r1.x = place of the block's first element in C: 2y * stride + 2x; the second row lies one stride further
ftoi r1.x, r0.x
ftoi r1.y, r0.y
imad r1.x, r1.x, cb0[0].w, r1.y
; times alpha
mcall(2) (r10, r11), (r10, r11, cb0[2], cb0[2])
mcall(2) (r12, r13), (r12, r13, cb0[2], cb0[2])
; plus beta * C, which is read only if beta is not zero: a NaN there must not spread into a product that ignores it
if_logicalnz cb0[4].x
    mov r1.z, r1.x
    mov r2, g[r1.z]
    mov r3, g[r1.z+1]
    mcall(2) (r2, r3), (r2, r3, cb0[3], cb0[3])
    mcall(1) (r10, r11), (r10, r11, r2, r3)
    iadd r1.z, r1.z, cb0[0].w
    mov r2, g[r1.z]
    mov r3, g[r1.z+1]
    mcall(2) (r2, r3), (r2, r3, cb0[3], cb0[3])
    mcall(1) (r12, r13), (r12, r13, r2, r3)
endif
mov g[r1.x], r10
mov g[r1.x+1], r11
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r12
mov g[r1.x+1], r13
endmain
end
"""  # noqa: E501


def double_double_text(*, trans_a: bool, trans_b: bool, fused: bool) -> str:
    """The IL of the double-double kernel for op(A) op(B) in which ``trans_a`` says that A is stored
    k x m, ``trans_b`` that B is stored n x k; ``fused``: with fused multiply-add.
    """
    words = {
        "pair": "NT"[trans_a] + "NT"[trans_b],
        "how": "with" if fused else "without",
        "a": "transpose(A)" if trans_a else "A",
        "b": "transpose(B)" if trans_b else "B",
        "a_shape": "k x m" if trans_a else "m x k",
        "b_shape": "n x k" if trans_b else "k x n",
        "a_line": "column" if trans_a else "row",
        "b_line": "row" if trans_b else "column",
        "a_fetched": _fetched("A", down=not trans_a),
        "b_fetched": _fetched("B", down=trans_b),
    }
    head = "il_ps_2_0\n" + _comment(INTRODUCTION.format(**words)) + HEAD.format(**words)
    fetches = _fetches(0, 2, "x", down=not trans_a) + _fetches(1, 4, "y", down=trans_b)
    loop = START.format(**words) + fetches + (FUSED if fused else UNFUSED)
    return f"{head}\n{_macros(fused)}\n{loop}{END}"


#: By name, functions that write a kernel's text.
TEXTS = {
    f"ddgemm_{pair}_{'fma' if fused else 'nofma'}": partial(
        double_double_text, trans_a=pair[0] == "t", trans_b=pair[1] == "t", fused=fused
    )
    for pair in ("nn", "nt", "tt")
    for fused in (True, False)
}


def _comment(text: str) -> str:
    """A text as comment lines."""
    lines = textwrap.wrap(text, WIDTH - 2, break_on_hyphens=False)
    return "".join(f"; {line}\n" for line in lines)


def _fetched(matrix: str, down: bool) -> str:
    """What a step of k fetches from a matrix, in words. ``down``: from two of its rows."""
    if down:
        return f"1 number of {matrix} from each of 2 rows"
    return f"2 numbers of {matrix} for each step of k"


def _fetches(resource: int, register: int, place: str, down: bool) -> str:
    """The two fetches of a step of k: texels below each other if ``down``, else side by side.
    ``place``: the component of r0 that says which, beside k in z.
    """
    coordinates = f"r0.z{place}00" if down else f"r0.{place}z00"
    second = "0,1,0" if down else "1,0,0"
    fetch = f"    sample_resource({resource})_sampler({resource})"
    return (
        f"{fetch} r{register}, {coordinates}\n"
        f"{fetch}_aoffimmi({second}) r{register + 1}, {coordinates}\n"
    )


def _macros(fused: bool) -> str:
    """The macros of two sums and of two products, with the comments above them."""
    name = f"ddgemm_tn_{'fma' if fused else 'nofma'}.il"
    text = files("cypresskit.kernels").joinpath(name).read_text(encoding="utf-8")
    first = text.index("; Two sums")
    last = text.rindex("mend\n") + len("mend\n")
    return text[first:last]
