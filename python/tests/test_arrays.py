"""Tests that array elements have the same values in numpy and on the GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import pytest

import flipwave
from flipwave.element import ElementType, from_bytes, read, to_bytes, write

kernels = pytest.importorskip("small_kernels", reason="Triton is not installed")

#: Triton's types, their numpy types, and a GPU that supports them.
TYPES = [
    ("i8", numpy.int8, "gfx90a"),
    ("u8", numpy.uint8, "gfx90a"),
    ("i16", numpy.int16, "gfx90a"),
    ("u16", numpy.uint16, "gfx90a"),
    ("i32", numpy.int32, "gfx90a"),
    ("u32", numpy.uint32, "gfx90a"),
    ("i64", numpy.int64, "gfx90a"),
    ("fp16", numpy.float16, "gfx90a"),
    ("bf16", ml_dtypes.bfloat16, "gfx90a"),
    ("fp32", numpy.float32, "gfx90a"),
    ("fp64", numpy.float64, "gfx90a"),
    ("fp8e5", ml_dtypes.float8_e5m2, "gfx90a"),
    ("fp8e4b8", ml_dtypes.float8_e4m3fnuz, "gfx942"),
    ("fp8e5b16", ml_dtypes.float8_e5m2fnuz, "gfx942"),
    ("fp8e4nv", ml_dtypes.float8_e4m3fn, "gfx950"),
]


def values(dtype: Any) -> Any:
    """256 numbers: all values of an 8-bit type, or small values of another type."""
    if numpy.dtype(dtype).itemsize == 1:
        return numpy.arange(256, dtype=numpy.uint8).view(dtype)
    return numpy.linspace(0, 100, 256).astype(dtype)


@pytest.mark.parametrize(("name", "dtype", "target"), TYPES)
def test_gpu_reads_elements_of_numpy(name: str, dtype: Any, target: str) -> None:
    kernel = flipwave.Kernel.from_triton(
        kernels.widen, {"x": f"*{name}", "out": "*fp32"}, {"COUNT": 256}, target
    )
    x, out = values(dtype), numpy.zeros(256, numpy.float32)
    campaign = flipwave.Campaign(kernel, 1, {"x": x, "out": out}, outputs=["out"])
    golden = campaign.golden()["out"]
    # NaN has many patterns, and reference numbers come from numpy and ml_dtypes.
    numpy.testing.assert_array_equal(golden, x.astype(numpy.float32))
    assert golden.dtype == numpy.float32
    assert not out.any(), "the argument was modified"


@pytest.mark.parametrize(("name", "dtype", "target"), TYPES)
def test_numpy_reads_elements_of_the_gpu(name: str, dtype: Any, target: str) -> None:
    kernel = flipwave.Kernel.from_triton(
        kernels.narrow, {"x": "*fp32", "out": f"*{name}"}, {"COUNT": 256}, target
    )
    x = numpy.linspace(0, 100, 256).astype(dtype).astype(numpy.float32)
    out = numpy.zeros((2, 8, 4, 4), dtype)
    campaign = flipwave.Campaign(kernel, 1, {"x": x, "out": out}, outputs=["out"])
    golden = campaign.golden()["out"]
    assert (golden.dtype, golden.shape) == (numpy.dtype(dtype), (2, 8, 4, 4))
    numpy.testing.assert_array_equal(golden.astype(numpy.float32).ravel(), x)


def test_ocp_and_fnuz_types_are_distinguished() -> None:
    x = values(ml_dtypes.float8_e4m3fn)
    kernel = flipwave.Kernel.from_triton(
        kernels.widen, {"x": "*fp8e4b8", "out": "*fp32"}, {"COUNT": 256}, "gfx942"
    )
    out = numpy.zeros(256, numpy.float32)
    with pytest.raises(flipwave.WrongType, match="float8_e4m3fnuz"):
        flipwave.Campaign(kernel, 1, {"x": x, "out": out}, outputs=["out"])
    # With the other type, the same bits are different numbers, so the tests above detect a confusion.
    reinterpreted = x.view(ml_dtypes.float8_e4m3fnuz)
    golden = flipwave.Campaign(kernel, 1, {"x": reinterpreted, "out": out}, outputs=["out"]).golden()["out"]
    assert not numpy.array_equal(golden, x.astype(numpy.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn])
def test_first_four_bit_element_is_in_the_low_half_of_a_byte(tmp_path: Path, dtype: Any) -> None:
    element = ElementType.of_dtype(numpy.dtype(dtype), "x")
    packed = numpy.array([0x21, 0xF7], numpy.uint8)
    array = from_bytes(packed, element, (2, 2))
    in_order = {ml_dtypes.int4: [1, 2, 7, -1], ml_dtypes.uint4: [1, 2, 7, 15]}
    expected = in_order.get(dtype, [0.5, 1.0, 6.0, -6.0])
    assert array.astype(numpy.float32).ravel().tolist() == expected
    assert array.tobytes() == numpy.array(expected).astype(dtype).tobytes()
    assert to_bytes(array, element).tolist() == packed.tolist()
    write(tmp_path / "x.bin", array, element)
    assert (tmp_path / "x.bin").read_bytes() == packed.tobytes()
    assert read(tmp_path / "x.bin", element, (2, 2)).tobytes() == array.tobytes()


def test_program_reads_four_bit_elements_like_numpy(tmp_path: Path) -> None:
    """Checks that the judge receives `i4` values, and that all buffers are returned unchanged."""
    source = """
    kernel void copy(global uchar *to, global const uchar *from) {
        to[get_global_id(0)] = from[get_global_id(0)];
    }
    """
    kernel = flipwave.Kernel.from_source(source, "copy")
    numbers = numpy.array(range(-8, 8)).astype(ml_dtypes.int4)
    args = {"to": numpy.zeros(16, ml_dtypes.int4), "from": numbers}
    campaign = flipwave.Campaign(kernel, 1, args, workgroup=8, outputs=["to"])
    golden = campaign.golden(all=True)
    assert golden["to"].astype(int).tolist() == golden["from"].astype(int).tolist() == list(range(-8, 8))


def test_arrays_outlive_their_files(make_campaign: Any, vectors: dict[str, Any]) -> None:
    out = make_campaign().golden()["out"]
    out[:] += 1
    numpy.testing.assert_array_equal(out, vectors["x"] + vectors["y"] + 1)


def test_scalars_are_converted_to_the_type_of_the_signature() -> None:
    x = numpy.arange(8, dtype=numpy.float32)
    for kind, factor in [("fp32", 0.5), ("fp64", 0.1), ("i64", 3), ("i8", -3), ("u16", 65535)]:
        kernel = flipwave.Kernel.from_triton(
            kernels.scale,
            {"x": "*fp32", "out": "*fp64", "factor": kind, "count": "i32"},
            {"COUNT": 8},
        )
        args = {"x": x, "out": numpy.zeros(8), "factor": factor, "count": numpy.int64(8)}
        golden = flipwave.Campaign(kernel, 1, args, outputs=["out"]).golden()["out"]
        numpy.testing.assert_allclose(golden, x * factor, rtol=1e-6)


def test_booleans_are_bytes() -> None:
    source = """
    kernel void invert(global uchar *to, global const uchar *from) {
        to[get_global_id(0)] = !from[get_global_id(0)];
    }
    """
    kernel = flipwave.Kernel.from_source(source, "invert")
    flags = numpy.array([True, False] * 4)
    campaign = flipwave.Campaign(kernel, 1, {"to": flags.copy(), "from": flags}, workgroup=8, outputs="to")
    golden = campaign.golden()["to"]
    assert golden.dtype == bool and (golden == ~flags).all()
