"""The elements of A, B and C: where C's are stored, and which products their correct sums add."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.products import Product
from cypresskit.machine.observer import WroteEvent

#: Elements are numbered from here to below twice this: no two doubles share a high word then.
MIN_NUMBER = 1 << 19


class MatrixElement(NamedTuple):
    """An element of A, B or C as stored; ``matrix`` is its letter."""

    matrix: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"{self.matrix}[{self.row}, {self.column}]"


Elements = tuple[MatrixElement, ...]
NO_ELEMENT = MatrixElement("", 0, 0)  # stands for what is no element of a matrix


class StoredAt(NamedTuple):
    """Where an element of C is stored.

    Attributes
    ----------
    number, word
        The first word is component ``word`` of element ``number`` of ``g[]``, or of the output of
        work-item ``number``.
    stream
        The output stream; None for ``g[]``.
    """

    number: int
    word: int
    stream: int | None

    def writers(self, event: WroteEvent) -> np.ndarray:
        """Return the work-items that write this element in an event."""
        none = np.zeros(0, int)
        if self.word not in event.components:
            return none
        if event.register.kind == "g" and self.stream is None:
            return np.flatnonzero(event.active & (event.element == self.number))
        to_stream = event.register.kind == "o" and event.register.index == self.stream
        return np.array([self.number]) if to_stream and event.active[self.number] else none


@dataclass(frozen=True, eq=False)
class TracedElement:
    """The element of C to trace, in a small product."""

    product: Product
    row: int
    column: int

    @property
    def kernel(self) -> Kernel:
        return self.product.kernel

    @cached_property
    def number_words(self) -> int:
        """Words per number of C."""
        return BYTES[self.kernel.precision] // 4

    @cached_property
    def place(self) -> StoredAt:
        """Where the element of C is stored: of counted numbers that are taken as a result."""
        arguments, convention = self.product.arguments(), self.kernel.convention
        arrays = arguments.get("outputs") or {None: arguments["global_memory"]}
        size = next(iter(arrays.values())).size
        counted = {
            stream: np.arange(n * size, (n + 1) * size).reshape(array.shape)
            for n, (stream, array) in enumerate(arrays.items())
        }
        result = self.product.result({"outputs": counted, "global_memory": counted.get(None)})
        stream, within = divmod(int(result[..., self.row, self.column].flat[0]), size)
        held = convention.texel if convention.streams else 16
        number, byte = divmod(within * convention.dtype.itemsize, held)
        return StoredAt(number, byte // 4, [*arrays][stream])

    @cached_property
    def correct_terms(self) -> dict[Elements, int | None]:
        """The terms of the correct sum, each with its k: None of the old C."""
        products = correct_products(self.kernel, self.row, self.column, self.product.size[2])
        terms: dict[Elements, int | None] = {elements: k for k, elements in enumerate(products)}
        return terms | ({self.old_term: None} if self.product.beta else {})

    @property
    def old_term(self) -> Elements:
        """The term of the old C."""
        return (MatrixElement("C", self.row, self.column),)

    def first_beside(self, element: MatrixElement) -> MatrixElement:
        """Return the first element that the block takes of a matrix, for the same k."""
        places = zip((self.row, self.column), self.kernel.block)
        row, column = (at - at % side for at, side in places)
        k = k_of(self.kernel, element)
        return element_for(self.kernel, element.matrix, row, column, k)

    def name(self, elements: Elements) -> str:
        """Return the name of a correct term."""
        k = self.correct_terms[elements]
        return f"the old value of {elements[0]}" if k is None else f"term k = {k}"

    def scalar(self, elements: Elements) -> tuple[str, float]:
        """Return the name and value of the scalar that multiplies a correct term."""
        is_old = elements == self.old_term
        return ("beta", self.product.beta) if is_old else ("alpha", self.product.alpha)


def k_of(kernel: Kernel, element: MatrixElement) -> int | None:
    """Return the k of an element of A or B; of C None."""
    axis = kernel.convention.k_axis(element.matrix)
    return None if axis is None else (element.column, element.row)[axis]


def place_of(kernel: Kernel, factor: MatrixElement) -> int:
    """Return the row or column of C to which an element of A or B belongs."""
    return factor.column if kernel.convention.k_axis(factor.matrix) else factor.row


def element_for(kernel: Kernel, matrix: str, row: int, column: int, k: int | None) -> MatrixElement:
    """Return the element of A or B that C[row, column] takes for a k; of C, without one, itself."""
    if k is None:
        return MatrixElement(matrix, row, column)
    place = row if matrix == "A" else column
    return MatrixElement(matrix, *((k, place) if kernel.convention.k_axis(matrix) else (place, k)))


def correct_products(kernel: Kernel, row: int, column: int, k: int) -> list[Elements]:
    """Return the elements whose products are the ``k`` terms of the correct C[row, column]."""
    sides = "A", "B"
    return [(*(element_for(kernel, side, row, column, n) for side in sides),) for n in range(k)]


def number_elements(product: Product, is_turned: bool) -> tuple[Product, dict[int, MatrixElement]]:
    """Return a product whose elements are all different, and the element of each word: of a double,
    of its high word. If ``is_turned``, the numbers are turned by a third: no element is the same
    then, nor a product of two (by half, two could change places).
    """
    matrices = {"A": product.a, "B": product.b, "C": product.c}
    count = sum(matrix.size for matrix in matrices.values())
    if count > MIN_NUMBER:
        raise ValueError(
            f"A, B and C have {count:,} elements: trace a product of at most {MIN_NUMBER:,}"
        )
    chosen = np.random.default_rng(1).choice(MIN_NUMBER, count, replace=False)
    numbers = (np.roll(chosen, count // 3) if is_turned else chosen) + float(MIN_NUMBER)
    elements: dict[int, MatrixElement] = {}
    made = []
    for letter, matrix in matrices.items():
        values, numbers = np.split(numbers, [matrix.size])
        words = values.astype(product.kernel.dtype).view(np.uint32).reshape(len(values), -1)[:, -1]
        for at, word in enumerate(words.tolist()):
            elements[word] = MatrixElement(letter, *divmod(at, matrix.shape[-1]))
        made.append(values.reshape(matrix.shape))
    a, b, c = made
    return replace(product, a=a, b=b, c=c), elements
