"""Count the tensor operations of a block of code, and how often the host reads a tensor.

On a GPU each operation is a kernel launch, and each read stalls the device: it is idle until the
host has the number and launches the next operation. Both can be counted on a CPU as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Operations whose result, or its shape, is read by the host.
_READ = {
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "equal",
    "masked_select",
    "nonzero",
    "unique_consecutive",
    "unique_dim",
}
_INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
_ASKED = {"tolist", "numpy"}  # methods that reach no dispatcher on a CPU
_FREE = {"_unsafe_view", "alias", "detach", "empty", "empty_like", "empty_strided", "lift_fresh"}


class TensorOperations:
    """A context that counts tensor operations by name, except views and allocations."""

    def __init__(self) -> None:
        self.operations: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()
        self._stack = ExitStack()

    def __enter__(self) -> TensorOperations:
        self._stack.enter_context(_Asked(self))
        self._stack.enter_context(_Dispatched(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    @property
    def totals(self) -> tuple[int, int]:
        """Operations and reads so far."""
        return self.operations.total(), self.reads.total()


class _Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, counted: TensorOperations) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counted = counted

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = func._schema.name.split("::")[1]
        if not func.is_view and name not in _FREE:
            self._counted.operations[name] += 1
        if name in _READ or (name in _INDEXED and any(map(_is_mask, args[1]))):
            self._counted.reads[name] += 1
        return func(*args, **(kwargs or {}))


def _is_mask(index: torch.Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


class _Asked(TorchFunctionMode):
    def __init__(self, counted: TensorOperations) -> None:
        super().__init__()
        self._counted = counted

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in _ASKED:
            self._counted.reads[name] += 1
        return func(*args, **(kwargs or {}))
