"""Kernels: from Triton, from a code object, or from source."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import MissingArgument, MissingTriton, UnknownArgument, WrongType, WrongValue

#: Lanes of a wave by default, of targets that begin so; 64 of others.
_WAVE32 = ("gfx10", "gfx11", "gfx12")


@dataclass(frozen=True, eq=False)
class Kernel:
    """A GPU kernel. Made by :meth:`from_triton`, :meth:`from_code_object` or :meth:`from_source`."""

    #: The kernel's name in the code.
    name: str
    #: The GPU it is for, ``gfx90a`` for instance; nothing where the campaign's default is meant.
    target: str | None = None
    #: Types of the parameters by name, in order, as Triton writes them: ``*fp16``, ``i32``. Nothing
    #: where they are not known: arguments then have the types of what is given.
    signature: Mapping[str, str] | None = None
    #: Compile-time constants of Triton, by name.
    constants: Mapping[str, Any] = field(default_factory=dict)
    #: The ELF file.
    code_object: bytes | None = field(default=None, repr=False)
    #: What Triton says of the code object, JSON.
    metadata: str | None = field(default=None, repr=False)
    #: The file with the source, or its text, and the compiler's flags.
    source: Path | str | None = field(default=None, repr=False)
    options: Sequence[str] | None = None

    @property
    def parameters(self) -> list[str] | None:
        """Names of the parameters in order, where they are known."""
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
        """Compiles a function of Triton's. Neither a GPU nor torch is needed.

        ``signature`` has the types of parameters, ``{"x": "*fp32", "n": "i32"}``, and ``constants`` the
        values of those that are ``tl.constexpr``; what is left out has its default. ``attributes`` is
        what the compiler may take for granted: ``{"x": {"divisibility": 16, "pointer_range": 32}}``,
        which Triton's own launcher finds out from tensors. Further ``options`` are Triton's,
        ``waves_per_eu`` and others. Sums and products are fused unless ``enable_fp_fusion=False``.
        """
        try:
            import triton
            from triton.backends.compiler import GPUTarget
            from triton.compiler import ASTSource
        except ImportError as error:
            raise MissingTriton(
                f"Triton is not installed here ({error}); install it with `pip install triton`, "
                "or use Kernel.from_code_object with what it has compiled elsewhere"
            ) from error
        if not isinstance(fn, triton.JITFunction):
            raise WrongType(
                f"from_triton: {fn!r} is no kernel of Triton's; expected a function decorated with "
                "@triton.jit, of an autotuned one its `.fn`, and TRITON_INTERPRET not set"
            )
        types, values = _parameters(fn, signature, dict(constants or {}))
        source = ASTSource(
            fn,
            {**types, **dict.fromkeys(values, "constexpr")},
            constexprs=values,
            attrs=_attributes(fn, types, attributes or {}),
        )
        # What Triton 3.9 does by default; later ones do not.
        options = {"num_warps": num_warps, "enable_fp_fusion": True, **options}
        if num_stages is not None:
            options["num_stages"] = num_stages
        lanes = 32 if target.startswith(_WAVE32) else 64
        compiled = triton.compile(source, target=GPUTarget("hip", target, lanes), options=options)
        facts = compiled.metadata._asdict()
        # Where the compiler's own libraries lie is of no use elsewhere.
        facts.pop("extern_libs", None)
        metadata = json.dumps(facts, default=lambda value: vars(value), indent=1, sort_keys=True)
        return Kernel(
            name=compiled.metadata.name,
            target=target,
            signature=types,
            constants=values,
            code_object=compiled.asm["hsaco"],
            metadata=metadata,
        )

    @staticmethod
    def from_code_object(
        code_object: str | Path | bytes,
        name: str | None = None,
        target: str | None = None,
        metadata: str | Path | Mapping[str, Any] | None = None,
        signature: Mapping[str, str] | None = None,
    ) -> Kernel:
        """A kernel of an ELF file, given as its path or its bytes.

        ``metadata`` is Triton's JSON file beside it, or what is in it; the kernel's name may be left out
        with it. ``signature`` has the types of the parameters as :meth:`from_triton` takes them.
        """
        if not isinstance(code_object, bytes):
            code_object = Path(code_object).read_bytes()
        facts: Mapping[str, Any] | None
        if metadata is None or isinstance(metadata, Mapping):
            facts = metadata
        else:
            facts = json.loads(Path(metadata).read_text())
        if name is None:
            name = (facts or {}).get("name")
        if name is None:
            raise MissingArgument("from_code_object: no `name` of the kernel, and none in `metadata`")
        written = None if facts is None else json.dumps(facts, indent=1, sort_keys=True)
        return Kernel(name, target, signature, code_object=code_object, metadata=written)

    @staticmethod
    def from_source(
        source: str | Path,
        name: str,
        target: str | None = None,
        options: Sequence[str] | None = None,
        signature: Mapping[str, str] | None = None,
    ) -> Kernel:
        """A kernel in OpenCL C (``.cl``) or HIP (``.hip``), given as the file's path or as text.

        Text with ``__global__`` in it is HIP. ``options`` are the compiler's flags, ``-O3`` by default.
        Without a ``signature``, arguments are the kernel's in order, with the types of what is given.
        """
        if isinstance(source, Path) or "\n" not in source and "{" not in source:
            source = Path(source)
            if not source.is_file():
                raise WrongValue(f"from_source: there is no file {source}; expected a path, or source text")
            source = source.resolve()
        return Kernel(name, target, signature, source=source, options=options)


def _parameters(
    fn: Any, signature: Mapping[str, str], constants: dict[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Types of a function's parameters, and values of those that are constants, both in order."""
    where = f"kernel `{fn.__name__}`"
    names = ", ".join(fn.arg_names)
    for given in (*signature, *constants):
        if given not in fn.arg_names:
            raise UnknownArgument(f"{where} has no parameter `{given}`; it has {names}")
    types, values = {}, {}
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
            values[name] = constants[name]
        elif parameter.has_default:
            values[name] = parameter.default
        else:
            raise MissingArgument(
                f"{where}: `{name}` has neither a type in the signature, as `*fp32` or `i32`, nor a value "
                "in the constants"
            )
    return types, values


def _attributes(
    fn: Any, types: Mapping[str, str], attributes: Mapping[str, Mapping[str, int]]
) -> dict[tuple[int, ...], list[list[object]]]:
    """What is taken for granted of parameters, as the compiler has it."""
    own: dict[tuple[int, ...], list[list[object]]] = {}
    for name, facts in attributes.items():
        if name not in types:
            raise UnknownArgument(
                f"kernel `{fn.__name__}`: attributes of `{name}`, which is none of {', '.join(types)}"
            )
        own[(fn.arg_names.index(name),)] = [
            [f"tt.{fact.removeprefix('tt.')}", value] for fact, value in facts.items()
        ]
    return own
