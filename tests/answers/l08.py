"""Lesson 08."""

TAIL = """
ishl r3.x, vTidInGrpFlat.x, l2.x
lds_store_vec_id(0) mem, r3.x, r3.x, r14
{fence}
if_logicalz r1.y
{add}
    mul r14, r14, cb0[0].x
    if_logicalnz cb0[4].x
        mov r4, g[r1.x]
        mad r14, r4, cb0[0].y, r14
    endif
    mov g[r1.x], r14
endif
endmain
end
"""
ADD = "iadd r3.y, r3.x, l2.y\nlds_load_vec_id(0) r4, r3.y, r3.y\nadd r14, r14, r4"


def tail(fence="fence_threads_lds", add=ADD):
    return TAIL.format(fence=fence, add=add)
