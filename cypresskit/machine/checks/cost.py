"""What an exercise may cost: fetches a work-item executes, bundles and registers of the compiled kernel."""

from collections.abc import Mapping

from cypresskit.compiler import CompileError, compile
from cypresskit.machine.checks.findings import Check, Places

BUDGETS = {
    "fetches": "fetches per work-item",
    "bundles": "bundles in a turn of the main loop",
    "registers": "registers per work-item",
}


class CostCheck(Check):
    """Reports what is over ``budgets``: a number for any of "fetches", "bundles", "registers"."""

    def __init__(self, places: Places, budgets: Mapping[str, float]):
        super().__init__(places)
        if not isinstance(budgets, Mapping):
            raise TypeError(f"budgets maps names to numbers, as in {{'fetches': 8}}; found {budgets!r}")
        for name in budgets:
            if name not in BUDGETS:
                raise ValueError(f"there is no budget {name!r}; choose of {', '.join(BUDGETS)}")
        self.budgets = budgets

    def finish(self, run) -> None:
        spent: dict[str, float] = {"fetches": run.fetches / max(1, run.work_items)}
        if {"bundles", "registers"} & set(self.budgets):
            try:
                code = compile(self.program, self.launch.device)
                spent |= {"bundles": code.card().loop_bundles, "registers": code.gprs}
            except CompileError as error:
                self._refused(str(error))
        advice = {
            "fetches": "A larger block per work-item uses each fetched number more often; is one fetched twice?",
            "bundles": "Look in the listing for bundles with empty slots and for work that the loop repeats.",
            "registers": "Fewer values alive at once: fetch later, or take a smaller block.",
        }
        for name, budget in self.budgets.items():
            if spent.get(name, 0) > budget:
                at = next(
                    (n for n, i in enumerate(self.program.body) if name == "fetches" and i.op.kind == "fetch"), -1
                )
                message = f"{spent[name]:g} {BUDGETS[name]}; the exercise allows {budget:g}"
                self.report("cost", at, message, advice[name], key=(name,), element=name)

    def _refused(self, error: str) -> None:
        """The compiler's refusal, with its line, in place of the costs."""
        where, _, what = error.partition("\n    ")
        at = next((n for n, i in enumerate(self.program.body) if self.program.where(i.line) == where), -1)
        message, _, advice = what.partition(". ")
        self.report("cost", at, f"no code for the chip comes of this kernel: {message}", advice, element="code")
