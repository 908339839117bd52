"""Kernels: from Triton, from a code object, or from source."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import values
from .element import ElementType
from .errors import MissingArgument, MissingTriton, UnknownArgument, WrongType, WrongValue

#: Prefixes of targets whose waves have 32 lanes by default; waves of other targets have 64.
_WAVE32 = ("gfx10", "gfx11", "gfx12")


#: Properties that Triton's launcher detects for pointers to tensors, by its backend.
_TENSOR_ATTRIBUTES = {"hip": {"divisibility": 16, "pointer_range": 32}, "cuda": {"divisibility": 16}}


@dataclass(frozen=True, eq=False)
class Kernel:
    """A GPU kernel. Create it with :meth:`from_triton`, :meth:`from_code_object` or :meth:`from_source`."""

    #: The kernel's name in the code.
    name: str
    #: The target processor, for example ``gfx90a``; ``None`` for the campaign's default.
    target: str | None = None
    #: Types of the parameters by name, in order, in Triton's notation: ``*fp16``, ``i32``. ``None`` if they
    #: are unknown; arguments then have the types of the given values.
    signature: Mapping[str, str] | None = None
    #: Triton's compile-time constants, by name.
    constants: Mapping[str, Any] = field(default_factory=dict)
    #: The ELF file, or the PTX module.
    code_object: bytes | None = field(default=None, repr=False)
    #: Triton's metadata of the code object, as JSON.
    metadata: str | None = field(default=None, repr=False)
    #: The path of the source file, or the source text; and the compiler flags.
    source: Path | str | None = field(default=None, repr=False)
    options: Sequence[str] | None = None

    def __post_init__(self) -> None:
        where = f"kernel `{values.text(self.name, 'Kernel: the name')}`"
        values.target(self.target, where)
        if self.signature is not None:
            _check_signature(values.mapping(self.signature, f"{where}: signature"), where)
        if isinstance(self.options, str):
            raise WrongType(f"{where}: options is the string {self.options!r}; expected a list of flags")

    @property
    def parameters(self) -> list[str] | None:
        """Names of the parameters in order, or ``None`` if they are unknown."""
        return None if self.signature is None else list(self.signature)

    @staticmethod
    def from_triton(
        fn: Any,
        signature: Mapping[str, str],
        constants: Mapping[str, Any] | None = None,
        target: str = "gfx90a",
        num_warps: int = 4,
        num_stages: int | None = None,
        attributes: Mapping[str, Mapping[str, int]] | None = None,
        **options: Any,
    ) -> Kernel:
        """Compiles a Triton function for an AMD GPU or, for targets such as ``sm_90``, to PTX. Neither a GPU
        nor torch is needed.

        ``signature`` gives the types of the parameters, ``{"x": "*fp32", "n": "i32"}``, and ``constants`` the
        values of ``tl.constexpr`` parameters; omitted constants have their defaults. ``attributes`` are
        assumptions that the compiler may make about parameters. By default, these are the properties that
        Triton's launcher detects for tensors, so that the code is the same as in production: pointers are
        multiples of 16 and, on AMD GPUs, refer to less than 2 GiB; there are no assumptions about numbers. ``{}`` makes no
        assumptions; ``{"x": {"divisibility": 16, "pointer_range": 32}, "n": {"divisibility": 16}}`` makes
        only these. Further ``options`` are Triton's, for example ``waves_per_eu``. Multiplications and
        additions are fused unless ``enable_fp_fusion=False``.
        """
        try:
            import triton
            from triton.compiler import ASTSource
        except ImportError as error:
            raise MissingTriton(
                f"Triton is not installed here ({error}); install it with `pip install triton`, "
                "or use Kernel.from_code_object with a kernel that was compiled elsewhere"
            ) from error
        if not isinstance(fn, triton.JITFunction):
            raise WrongType(
                f"from_triton: {fn!r} is not a Triton kernel; expected a function decorated with "
                "@triton.jit, or the `.fn` of an autotuned one, with TRITON_INTERPRET not set"
            )
        where = f"kernel `{fn.__name__}`"
        values.target(target, where)
        given = values.mapping({} if constants is None else constants, f"{where}: constants")
        types, constexprs = _parameters(fn, values.mapping(signature, f"{where}: signature"), given)
        _check_signature(types, where)
        compiled_for = _triton_target(target)
        source = ASTSource(
            fn,
            {**types, **dict.fromkeys(constexprs, "constexpr")},
            constexprs=constexprs,
            attrs=_attributes(fn, types, attributes, compiled_for.backend),
        )
        # The default of Triton 3.9, but not of later versions.
        options = {"num_warps": num_warps, "enable_fp_fusion": True, **options}
        if num_stages is not None:
            options["num_stages"] = num_stages
        try:
            compiled = triton.compile(source, target=compiled_for, options=options)
        except Exception as error:
            raise WrongValue(f"{where} does not compile for {target}: {error}") from error
        facts = compiled.metadata._asdict()
        # Paths of the compiler's libraries are meaningless on other machines.
        facts.pop("extern_libs", None)
        metadata = json.dumps(facts, default=lambda value: vars(value), indent=1, sort_keys=True)
        return Kernel(
            name=compiled.metadata.name,
            target=target,
            signature=types,
            constants=constexprs,
            code_object=_code(compiled.asm),
            metadata=metadata,
        )

    @staticmethod
    def from_code_object(
        code_object: str | os.PathLike[str] | bytes,
        name: str | None = None,
        target: str | None = None,
        metadata: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        signature: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Creates a kernel from an ELF file or a PTX module, given as its path or its bytes.

        ``metadata`` is the path or the content of Triton's JSON file for this code object; with it, ``name``
        may be omitted. ``signature`` gives the types of the parameters as in :meth:`from_triton`.
        """
        if not isinstance(code_object, bytes):
            code_object = _read(code_object, "from_code_object: code_object")
        facts: Mapping[str, Any] | None
        if metadata is None or isinstance(metadata, Mapping):
            facts = metadata
        else:
            facts = _read_metadata(metadata)
        if name is None:
            name = (facts or {}).get("name")
        if name is None:
            raise MissingArgument(
                "from_code_object: the kernel's `name` is missing, and `metadata` contains none"
            )
        written = None if facts is None else json.dumps(facts, indent=1, sort_keys=True)
        return Kernel(name, target, signature, code_object=code_object, metadata=written)

    @staticmethod
    def from_source(
        source: str | os.PathLike[str],
        name: str,
        target: str | None = None,
        options: Sequence[str] | None = None,
        signature: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Creates a kernel from OpenCL C (``.cl``), HIP (``.hip``) or CUDA (``.cu``), given as the path of a
        file or as text.

        Text that contains ``__global__`` is CUDA for targets such as ``sm_90``, and HIP for others. ``options`` are the compiler flags, ``-O3`` by default.
        Without a ``signature``, arguments are passed in order, with the types of the given values.
        """
        if isinstance(source, os.PathLike) or "\n" not in values.text(source, "from_source: source") and (
            "{" not in source
        ):
            source = values.path(source, "from_source: source")
            if not source.is_file():
                raise WrongValue(f"from_source: no file {source}; expected a path, or source text")
            source = source.resolve()
        return Kernel(name, target, signature, source=source, options=options)


def _triton_target(target: str) -> Any:
    """Triton's name of a target."""
    from triton.backends.compiler import GPUTarget

    if target.startswith("sm_"):
        return GPUTarget("cuda", int(target.removeprefix("sm_").rstrip("a")), 32)
    return GPUTarget("hip", target, 32 if target.startswith(_WAVE32) else 64)


def _code(files: Mapping[str, Any]) -> bytes:
    """The code among the files that Triton's compiler writes: an ELF file, or PTX."""
    if "hsaco" in files:
        return bytes(files["hsaco"])
    return str(files["ptx"]).encode()


def _check_signature(signature: Mapping[str, Any], where: str) -> None:
    """Checks the types in a signature."""
    for name, kind in signature.items():
        if not isinstance(kind, str):
            raise WrongType(
                f"{where}: the signature of `{name}` is {kind!r}; expected a type such as 'i32' or '*fp32'"
            )
        if kind != "constexpr":
            ElementType.of_triton(kind.removeprefix("*"), f"{where}: `{name}`")


def _read(file: Any, where: str) -> bytes:
    try:
        return values.path(file, where).read_bytes()
    except OSError as error:
        raise WrongValue(f"{where}: cannot read {file}: {error.strerror}") from error


def _read_metadata(file: Any) -> Mapping[str, Any]:
    """Reads Triton's JSON file of a code object."""
    where = "from_code_object: metadata"
    try:
        facts = json.loads(_read(file, where))
    except ValueError as error:
        raise WrongValue(f"{where}: {file} is not Triton's JSON file of a code object: {error}") from error
    return values.mapping(facts, f"{where}: the content of {file}")


def _parameters(
    fn: Any, signature: Mapping[str, str], constants: dict[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Returns the types of a function's parameters, and the values of its constants, both in order."""
    where = f"kernel `{fn.__name__}`"
    names = ", ".join(fn.arg_names)
    for given in (*signature, *constants):
        if given not in fn.arg_names:
            raise UnknownArgument(f"{where} has no parameter `{given}`; it has {names}")
    types, constexprs = {}, {}
    for parameter in fn.params:
        name = parameter.name
        kind = signature.get(name, "constexpr")
        if kind != "constexpr":
            if name in constants:
                raise WrongValue(
                    f"{where}: `{name}` has the type `{kind}` in the signature and a value in the "
                    "constants; expected one of them"
                )
            types[name] = kind
        elif name in constants:
            constexprs[name] = constants[name]
        elif parameter.has_default:
            constexprs[name] = parameter.default
        else:
            raise MissingArgument(
                f"{where}: `{name}` has neither a type in the signature, such as `*fp32` or `i32`, nor a "
                "value in the constants"
            )
    return types, constexprs


def _attributes(
    fn: Any, types: Mapping[str, str], attributes: Mapping[str, Mapping[str, int]] | None, backend: str
) -> dict[tuple[int, ...], list[list[object]]]:
    """Converts assumptions about parameters to the compiler's form."""
    if attributes is None:
        tensor = _TENSOR_ATTRIBUTES[backend]
        attributes = {name: tensor for name, kind in types.items() if kind.startswith("*")}
    converted: dict[tuple[int, ...], list[list[object]]] = {}
    for name, facts in attributes.items():
        if name not in types:
            raise UnknownArgument(
                f"kernel `{fn.__name__}`: attributes of `{name}`; expected one of {', '.join(types)}"
            )
        converted[(fn.arg_names.index(name),)] = [
            [f"tt.{fact.removeprefix('tt.')}", value] for fact, value in facts.items()
        ]
    return converted
