// IL in a minute: what the text of a kernel consists of. Lesson 00 shows the same table.
import {makeTerms} from "./il_text.js"

// What a reader sees, and what it means. Python reads this array, too.
const IL_MINUTE = [
  ["`r3`", "a register: four components, `x y z w`, each a number of 32 bits"],
  [
    "`r3.x`, `r3.xyxy`",
    "components that a line reads, in any order (a swizzle); `r3` alone is `r3.xyzw`",
  ],
  ["`mad r10.xy__, ...`", "components that a line writes (a mask); `_` leaves one as it is"],
  [
    "`mad d, a, b, c`",
    "`d` = `a` times `b` plus `c`, in each component; `mul`, `add` and `mov` are similar",
  ],
  [
    "`sample_resource(0) ... r2, r0.xz00`",
    "fetch from texture 0 at column `r0.x`, row `r0.z`; texture 0 is A, texture 1 is B",
  ],
  ["`_aoffimmi(1,0,0)`", "fetch one column further to the right; `(0,1,0)`: one row further down"],
  ["`l0`", "constants that the kernel declares: `dcl_literal l0, 0.0, 1.0, ...`"],
  [
    "`cb0[0]`",
    "numbers from the launch: `x` alpha, `y` beta, `z` the length k of a sum, `w` the length of a row of C",
  ],
  ["`o0`", "an output: what the work-item computed"],
  [
    "`g[r1.x]`",
    "element `r1.x` of global memory, four numbers; larger kernels read and write C there",
  ],
  [
    "`whileloop`, `break_logicalnz r1.x`, `endloop`",
    "a loop; it ends when `r1.x` is not 0. `ge r1.x, a, b` sets it when `a` is at least `b`",
  ],
  [
    "alpha, beta",
    "a kernel computes alpha times A B, plus beta times the C that was in memory before",
  ],
  ["A", "from the 2 x 2 step on, A is stored transposed: its columns are rows in memory"],
]

/** @param {HTMLElement} parent */
export function showIlMinute(parent) {
  makeTerms(parent, IL_MINUTE)
}
