"""What the workbench's panels "IL in a minute" and "Legend" show: terms, and their meanings."""

#: The table that lesson 00 shows, too: what a reader sees in a kernel, and what it means.
IL_MINUTE = (
    ("`r3`", "a register: four components, `x y z w`, each a number of 32 bits"),
    (
        "`r3.x`, `r3.xyxy`",
        "components that a line reads, in any order (a swizzle); `r3` alone is `r3.xyzw`",
    ),
    ("`mad r10.xy__, ...`", "components that a line writes (a mask); `_` leaves one as it is"),
    (
        "`mad d, a, b, c`",
        "`d` = `a` times `b` plus `c`, in each component; `mul`, `add` and `mov` are similar",
    ),
    (
        "`sample_resource(0) ... r2, r0.xz00`",
        "fetch from texture 0 at column `r0.x`, row `r0.z`; texture 0 is A, texture 1 is B",
    ),
    (
        "`_aoffimmi(1,0,0)`",
        "fetch one column further to the right; `(0,1,0)`: one row further down",
    ),
    ("`l0`", "constants that the kernel declares: `dcl_literal l0, 0.0, 1.0, ...`"),
    (
        "`cb0[0]`",
        "numbers from the launch: `x` alpha, `y` beta, `z` the length k of a sum, `w` how many "
        "elements of `g[]` a row of C takes",
    ),
    ("`o0`", "an output: what the work-item computed"),
    (
        "`g[r1.x]`",
        "element `r1.x` of global memory, four numbers; larger kernels read and write C there",
    ),
    (
        "`whileloop`, `break_logicalnz r1.x`, `endloop`",
        "a loop; it ends when `r1.x` is not 0. `ge r1.x, a, b` sets it when `a` is at least `b`",
    ),
    (
        "alpha, beta",
        "most kernels compute alpha times A B, plus beta times the C that was in memory "
        "before; `cb0[4].x` is 0 if beta is 0",
    ),
    ("A", "in most steps, A is stored transposed: its columns are rows in memory"),
)

#: The statistics of a kernel: name, field of ``KernelStats``, and meaning.
STATISTICS = (
    (
        "bundles per iteration",
        "bundles_per_iteration",
        "bundles in one iteration of the main loop; each holds up to five operations",
    ),
    ("registers", "gprs", "registers per work-item; with fewer, an engine holds more wavefronts"),
    (
        "wavefronts",
        "wavefronts",
        "wavefronts that an engine holds; while some wait, others compute",
    ),
    ("fetches per iteration", "fetches", "fetches from textures in one iteration of the main loop"),
    (
        "LDS per iteration",
        "lds_operations",
        "accesses to the local data share in one iteration of the main loop",
    ),
    (
        "full bundles",
        "slots5_pct",
        "share of the loop's bundles in which all five slots are filled",
    ),
)

#: What is seen on the page, and its keys.
LEGEND = (
    ("live", "registers in use at a line; the compiler may need more or fewer: see `registers`"),
    ("colors", "a line and its operations in the bundles have the same color"),
    ("bundle", "a row: operations that run at once in slots x y z w t; a dashed slot is empty"),
    ("MAD, PRED", "multiply-add; the test of the loop. Point at a slot to see the whole operation"),
    ("gray", "belongs to the previous text"),
    (
        "cost",
        "percent of the time that is saved if the line takes no time; it depends on what "
        "is left to wait for",
    ),
    (
        "orange element",
        "incorrect: click it, or press Enter on it, to see its terms, the wrong ones in red",
    ),
    ("busy", "share of the time in which a unit works: ALU, texture, LDS, L2, DRAM"),
    *((name, meaning) for name, _, meaning in STATISTICS),
    ("F2", "speaks what the caret's word means, for a screen reader"),
    ("Tab, Shift+Tab", "indent or unindent; press Escape before Tab to leave the editor"),
    ("arrow keys, Enter", "choose an element of C, a slot or an edit, and use it as a click does"),
    (
        "Ctrl+Z, Ctrl+Y",
        "undo and redo, a word at a time; the history has the texts that were judged",
    ),
)

#: What a page gets.
TABLES = {"il_minute": IL_MINUTE, "statistics": STATISTICS, "legend": LEGEND}
