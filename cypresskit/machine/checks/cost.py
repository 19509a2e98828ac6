"""What an exercise may cost: fetches a work-item executes, bundles and registers of the compiled kernel."""

from collections.abc import Mapping

from cypresskit.compiler import CompileError, compile
from cypresskit.machine.checks.findings import Check, Naming

#: What may have a budget: what it counts, and what brings it down.
BUDGETS = {
    "fetches": ("fetches per work-item",
                "A larger block per work-item uses each fetched number more often; is one fetched twice?"),
    "bundles": ("bundles in a turn of the main loop",
                "Look in the listing for bundles with empty slots and for work that the loop repeats."),
    "registers": ("registers per work-item", "Fewer values alive at once: fetch later, or take a smaller block."),
}  # fmt: skip


class CostCheck(Check):
    """Reports what is over ``budgets``: a number for any of "fetches", "bundles", "registers"."""

    def __init__(self, naming: Naming, budgets: Mapping[str, float]):
        super().__init__(naming)
        if not isinstance(budgets, Mapping):
            raise TypeError(f"budgets maps names to numbers, as in {{'fetches': 8}}; found {budgets!r}")
        if unknown := [name for name in budgets if name not in BUDGETS]:
            raise ValueError(f"there is no budget {unknown[0]!r}; choose of {', '.join(BUDGETS)}")
        self.budgets = budgets

    def finish(self, run) -> None:
        spent: dict[str, float] = {"fetches": run.fetches / max(1, run.work_items)}
        if {"bundles", "registers"} & set(self.budgets):
            try:
                code = compile(self.program, self.launch.device)
                spent |= {"bundles": code.card().loop_bundles, "registers": code.gprs}
            except CompileError as error:
                self._refused(str(error))
        fetches = [n for n, i in enumerate(self.program.body) if i.op.kind == "fetch"] or [-1]
        for name, budget in self.budgets.items():
            if spent.get(name, 0) > budget:
                message = f"{spent[name]:g} {BUDGETS[name][0]}; the exercise allows {budget:g}"
                at = fetches[0] if name == "fetches" else -1
                self.report("cost", at, message, BUDGETS[name][1], key=(name,), element=name)

    def _refused(self, error: str) -> None:
        """The compiler's refusal, with its line, in place of the costs."""
        where, _, what = error.partition("\n    ")
        at = next((n for n, i in enumerate(self.program.body) if self.program.where(i.line) == where), -1)
        message, _, advice = what.partition(". ")
        self.report("cost", at, f"no code for the chip comes of this kernel: {message}", advice, element="code")
