"""Vectors of eight numbers in the processor's registers, for loops that the compiler does not vectorise by itself.

For use inside compiled kernels, with float32 or float64: ``load(array, i)`` reads array[i : i + 8] of a one-dimensional
contiguous array, ``store(array, i, v)`` writes it, ``fill(array, i)`` is array[i] eight times and ``zeros(array)`` is
eight zeros. ``add``, ``multiply``, ``multiply_add(v, w, total)`` = v w + total, ``subtract_product(total, v, w)`` =
total - v w and ``inverse_root(v)`` = 1 / sqrt(v) act on all eight. Indices are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import register_model

LANES = 8
"""Numbers in a vector: one register of float32 with AVX2 or of float64 with AVX-512, elsewhere two or four."""

FLAGS = ("contract",)
"""Products and sums may be fused."""


class Vector(types.Type):
    """The compiler's type of eight numbers."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, of: Vector) -> None:
        of_numbers = manager.lookup(of.dtype).get_value_type()
        super().__init__(manager, of, ir.VectorType(of_numbers, LANES))  # type: ignore[no-untyped-call]


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for use in kernels, whose machine code ``function`` generates."""
    return numba_intrinsic(function)


def _place(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, int]:
    """The address of array[i] as that of a vector, and its guaranteed alignment."""
    of = signature.args[0]
    array = context.make_array(of)(context, builder, args[0])
    kind = ir.VectorType(context.get_data_type(of.dtype), LANES).as_pointer()
    return builder.bitcast(builder.gep(array.data, [args[1]]), kind), of.dtype.bitwidth // 8


@intrinsic
def load(_typing: Any, array: Any, index: Any) -> Any:
    """array[index : index + 8]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _place(context, builder, signature, args)
        return builder.load(place, align=align)

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
def store(_typing: Any, array: Any, index: Any, vector: Any) -> Any:
    """array[index : index + 8] = vector."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, align = _place(context, builder, signature, args)
        builder.store(args[2], place, align=align)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic
def zeros(_typing: Any, array: Any) -> Any:
    """Eight zeros of the array's type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return Vector(array.dtype)(array), generate


@intrinsic
def fill(_typing: Any, array: Any, index: Any) -> Any:
    """array[index], eight times."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        kind = context.get_value_type(signature.return_type)
        number, undefined = builder.load(builder.gep(array.data, [args[1]])), ir.Constant(kind, ir.Undefined)
        first = builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))

    return Vector(array.dtype)(array, types.intp), generate


@intrinsic
def add(_typing: Any, v: Any, w: Any) -> Any:
    """v + w."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(*args)

    return v(v, w), generate


@intrinsic
def multiply_add(_typing: Any, v: Any, w: Any, total: Any) -> Any:
    """v w + total."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(builder.fmul(args[0], args[1], flags=FLAGS), args[2], flags=FLAGS)

    return v(v, w, total), generate


@intrinsic
def multiply(_typing: Any, v: Any, w: Any) -> Any:
    """v w."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(*args)

    return v(v, w), generate


@intrinsic
def subtract_product(_typing: Any, total: Any, v: Any, w: Any) -> Any:
    """total - v w."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fsub(args[0], builder.fmul(args[1], args[2], flags=FLAGS), flags=FLAGS)

    return v(total, v, w), generate


@intrinsic
def inverse_root(_typing: Any, v: Any) -> Any:
    """1 / sqrt(v)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        name = f"llvm.sqrt.v{LANES}f{v.dtype.bitwidth}"
        find: Any = cgutils.get_or_insert_function
        root = find(builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.fdiv(ir.Constant(kind, [1.0] * LANES), builder.call(root, args))

    return v(v), generate
