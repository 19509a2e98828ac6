"""What the compiler reads of a board."""

from typing import NamedTuple

from cypresskit.devices import Device


class Target(NamedTuple):
    """The numbers of a board that decide its code: boards that agree in them get the same code.

    Its fields are attributes of ``Device``. The name is in messages.
    """

    name: str
    double_fmas: float
    lds_bytes: int
    usable_gprs: int
    clause_temporaries: int
    alu_clause_slots: int
    tex_clause_fetches: int

    @classmethod
    def of(cls, device: Device) -> "Target":
        return cls(*(getattr(device, field) for field in cls._fields))
