"""Forbid child processes by a filter of system calls (seccomp), which can't be removed again.

``fork``, ``subprocess`` and other means of starting a process raise ``PermissionError``; threads
still work. Also refused are memory that isn't counted as the process's own (files in memory,
shared segments); namespaces and mounts, in which such memory could be had; and other processes'
memory. There are filters for x86-64 and Arm; on other processors ``forbid_child_processes`` does
nothing.
"""

import ctypes
import errno
import platform
import struct

NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl
THREAD = 0x10000  # CLONE_THREAD, among the flags of clone
#: Calls that are refused and have the same number everywhere: open_tree, move_mount, fsopen,
#: fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr and memfd_secret.
NEW_CALLS = (*range(428, 434), 438, 442, 447)
#: By processor: its number in the kernel, the numbers of the system calls clone and clone3, and of
#: others that are refused: fork, vfork, shmget, memfd_create; unshare, setns, mount, umount2,
#: pivot_root, chroot; ptrace, process_vm_readv and process_vm_writev.
CALLS = {
    "x86_64": (
        0xC000003E,
        56,
        435,
        (57, 58, 29, 319, 272, 308, 165, 166, 155, 161, 101, 310, 311, *NEW_CALLS),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        (194, 279, 97, 268, 40, 39, 41, 51, 117, 270, 271, *NEW_CALLS),
    ),
}
FOREIGN_CALLS = 0x40000000  # from here on, numbers of calls of another calling convention
# Opcodes of the filter's machine: load a word, return, and jumps.
LOAD, RETURN, EQUAL, AT_LEAST, ANY_BIT = 0x20, 0x06, 0x15, 0x35, 0x45
NUMBER, PROCESSOR, FIRST = 0, 4, 16  # offsets in a call's record
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def make_filter(processor: str) -> bytes:
    """Return the filter for a processor in ``CALLS``, as the kernel reads it."""
    name, clone, clone3, others = CALLS[processor]
    steps: list[tuple[int, str, str, int]] = [
        (LOAD, "", "", PROCESSOR),
        (EQUAL, "", "refuse", name),
        (LOAD, "", "", NUMBER),
        (AT_LEAST, "refuse", "", FOREIGN_CALLS),
        (EQUAL, "unknown", "", clone3),  # the C library then uses clone
        *((EQUAL, "refuse", "", other) for other in others),
        (EQUAL, "", "allow", clone),
        (LOAD, "", "", FIRST),
        (ANY_BIT, "allow", "refuse", THREAD),
    ]
    ends = {
        "allow": ALLOW,
        "refuse": REFUSE | errno.EPERM,
        "unknown": REFUSE | errno.ENOSYS,
    }
    place = {name: len(steps) + n for n, name in enumerate(ends)}
    code = b""
    for n, (what, then, otherwise, value) in enumerate(steps):
        jumps = [place[name] - n - 1 if name else 0 for name in (then, otherwise)]
        code += struct.pack("<HBBI", what, *jumps, value)
    for value in ends.values():
        code += struct.pack("<HBBI", RETURN, 0, 0, value)
    return code


def forbid_child_processes() -> None:
    """Forbid this process and its threads to start processes or use uncounted memory."""
    processor = platform.machine()
    if processor not in CALLS:
        return
    steps = make_filter(processor)
    code = ctypes.create_string_buffer(steps, len(steps))
    filters = struct.pack("@HP", len(code) // 8, ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    zeros = (ctypes.c_ulong(0),) * 3
    library.prctl(NO_NEW_PRIVILEGES, ctypes.c_ulong(1), *zeros)
    if library.prctl(SECCOMP, ctypes.c_ulong(FILTER), filters, *zeros[:2]):
        raise OSError(ctypes.get_errno(), "can't set a filter of system calls")
