"""What AMD's IL has and cypresskit's subset leaves out: names by kind, and the section of AMD's specification (version
2.4) that defines them, or the later chip whose they are. A star stands for any ending."""

from collections.abc import Iterable

from cypresskit.il.errors import nearest

_TABLE = """
7.4  Flow Control Instructions | calls, switches, counted loops | call callnz call_logical* func endfunc ret
     ret_logical* switch case default endswitch loop ifnz endphase hs_*
7.5  Declaration and Initialization Instructions | declarations for drawing, indexed registers, unordered access views
     (UAV), other memories | dcl_arena_uav dcl_raw_* dcl_struct_uav dcl_struct_srv dcl_struct_gds dcl_gds*
     dcl_typed_uav dcl_typeless_uav dcl_uav dcl_global_flags dcl_gws_thread_count dcl_indexed_temp_array dcl_input
     dcl_input_generic dcl_input_primitive dcl_output dcl_output_topology dcl_odepth dcl_max_output_*
     dcl_max_tessfactor dcl_num_icp dcl_num_ocp dcl_num_instance* dcl_persist dcl_semaphore dcl_shared_temp dcl_stream
     dcl_total_num_* dcl_ts_* dcl_vprim dcl_function_* dcl_interface_ptr dcl_lds_sharing_mode dclarray dcldef dclpi
     dclpin dclpp dclpt dclv dclvout def defb init*
7.6  Input/Output Instructions | drawing and filtered fetches | kill discard_* emit* cut* sample_b sample_c sample_g
     sample_l sampleinfo* samplepos* lod* texld* texweight* fetch4* memexport* memimport* resinfo* load_fptr* bufinfo*
     getlod* eval_* scatter*
7.7  Integer Arithmetic Instructions | 64-bit integers | i64* u64*
7.9  Bit Operations | bit search and reversal | ffb* ubit_reverse
7.10 Conversion Instructions | half precision | f2f16* f162f f_2_u4
7.11 Float Instructions | functions and vectors of shading | abs acos asin atan clamp clg cmov cmp colorclamp cos
     cos_vec crs det dist dp2add dst dsx* dsy* dxsincos exn exp exp_vec expp faceforward fwidth len lit ln log log_vec
     logp lrp mmul mova noise* nrm* pireduce pow project* reflect* rnd set* sgn sin sin_vec sincos tan transpose
     trc
7.12 Double-Precision Instructions | double functions | dfrexp dldexp dmovc drcp* drsq* dsqrt
7.13 Multi-Media Instructions | multimedia | bitalign bytealign sad* u4lerp unpack*
7.14 Miscellaneous Special Instructions | special | nop invariant_move prec* comment
7.15 Evergreen GPU Series Memory Controls | unordered access views (UAV) and their atomics | uav_* srv_* append_*
7.16 LDS Instructions | atomics and narrow accesses of LDS | lds_add lds_and lds_cmp lds_dec lds_inc lds_max lds_min
     lds_mskor lds_or lds_rsub lds_sub lds_umax lds_umin lds_xor lds_read_* lds_load_byte lds_load_ubyte
     lds_load_short lds_load_ushort lds_store_byte lds_store_short
7.17 GDS Instructions | global data share and its atomics | gds_*
7.18 Virtual Function / Interface Support | interfaces | fcall
Northern Islands instructions, of a later chip | signed 24-bit products | imul24 imul24_high imad24
Southern Islands instructions, of a later chip | doubles to integers, extremes of three, quotients by steps,
     semaphores | class cu_id dclass ddiv_* div_* dtoi dtou dtrig_preop frexp_* ftoi_flr ftoi_rpi imax3 imed3 imin3
     itod ldexp max3 med3 min3 mqsad_u8 msad_u8 qsad_u8 sample_return_code semaphore_* umax3 umed3 umin3 utod wave_id
"""

#: Names that another chip's IL has, or that people write, and what to use here.
ADVICE = {
    "dcl_lds_size_per_thread": "belongs to an earlier chip (R700). Here an LDS array is declared with "
    "`dcl_lds_id(0) BYTES` or `dcl_struct_lds_id(0) STRIDE, COUNT`",
    "lds_read_vec": "belongs to an earlier chip (R700). Use `lds_load_id(0)` or `lds_load_vec_id(0)`",
    "lds_write_vec": "belongs to an earlier chip (R700). Use `lds_store_id(0)` or `lds_store_vec_id(0)`",
    "dsub": "doesn't exist in IL. Use `dadd` with `_neg(xy)` behind the second source",
}
_INSTEAD = {
    "abs": "mov r0, r1_abs", "sgn": "mov r0, r1_sign", "trc": "round_z", "rnd": "round_nearest", "uav_": "g[]",
    "dcl_raw_uav": "g[]", "lrp": "sub and mad", "dp2add": "dp2 and add", "imul24": "umul24, or imul",
    "imad24": "umad24, or imad", "itod": "itof and f2d", "dtoi": "d2f and ftoi",
}  # fmt: skip


_ROWS = (row.split(" | ") for row in _TABLE.strip().replace("\n     ", " ").splitlines())
#: Section and title, what is left out of it, and names.
LEFT_OUT = [(" ".join(where.split()), kind, names.split()) for where, kind, names in _ROWS]


def left_out(word: str, than: str = "") -> str:
    """A message that says why an instruction of AMD's IL isn't taken; "" for a ``word`` that IL doesn't have, or where
    no name left out is longer ``than`` the opcode that the word begins with."""
    for name, why in ADVICE.items():
        if word.startswith(name):
            return f"`{name}` {why}"
    for where, kind, names in LEFT_OUT:
        for name in names:
            matches = word.startswith(name[:-1]) if name.endswith("*") else f"{word}_".startswith(f"{name}_")
            if len(name) > len(than) and matches:
                use = next((f" Use `{use}`." for known, use in _INSTEAD.items() if word.startswith(known)), "")
                return f"`{word[:40]}` is not in cypresskit's subset of AMD's IL ({where}: {kind}).{use}"
    return ""


def unknown(word: str, known: Iterable[str]) -> str:
    """A message about a word that is no instruction: why it was left out, or the nearest of the ``known`` names."""
    kind = next((start for start in ("dcl_", "lds_") if word.startswith(start)), "")
    same = [name for name in known if name.startswith(kind) and (kind or not name.startswith(("dcl_", "lds_")))]
    if why := left_out(word):
        return why
    guess = nearest(word, same, 0.65) or nearest(word.split("_")[0], same, 0.65)
    return f"`{word[:40]}` is no instruction of IL.{guess}"
