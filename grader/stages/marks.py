"""The lines of a stage that matter for speed, each with words: what it moves or computes, how wide."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

KINDS = {
    "load": "reads global memory",
    "store": "writes global memory",
    "async": "copies global memory to shared memory without waiting",
    "tensor": "runs on the tensor cores",
    "shared": "goes through shared memory",
    "layout": "moves a tensor to another layout: which thread holds which element",
    "spill": "keeps a value in local memory, because registers ran out",
    "atomic": "an atomic operation",
    "shuffle": "exchanges values between the lanes of a warp",
    "barrier": "waits for other threads, or for a copy",
}


@dataclass(frozen=True)
class Mark:
    kind: str  # of KINDS
    words: str
    condition: str = ""  # "masked", or in machine code "predicated": not every lane does it

    @property
    def told(self) -> str:
        return f"{self.words}, {self.condition}" if self.condition else self.words


Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], Mark]]


def mark(stage: str, text: str) -> Mark | None:
    """What matters about one line of a stage; None for all the others."""
    if stage in ("ttir", "ttgir"):
        return _first(TENSOR_IR, text)
    if stage == "llir":
        return _llvm(text)
    if stage == "ptx":
        return _ptx(text)
    if stage == "sass":
        return _sass(text)
    return _first(AMDGCN, text.split(";")[0]) or _spill_comment(text)


def _first(rules: Iterable[Rule], text: str) -> Mark | None:
    for pattern, made in rules:
        if found := pattern.search(text):
            return made(found)
    return None


def _rule(pattern: str, kind: str, words: str) -> Rule:
    return re.compile(pattern), lambda found: Mark(kind, words)


def _access(kind: str, bits: int, where: str = "") -> Mark:
    """A load or store of so many bits a lane: more than one 32-bit register at a time is a vector access."""
    name = f"{where} {kind}" if where else kind
    if where:
        return Mark("shared", f"{name}, {bits} bit")
    return Mark(kind, f"vector {kind}, {bits} bit" if bits > 32 else f"{kind}, {bits} bit")


# -- TTIR and TTGIR: operations on whole tensors -------------------------------------------------------------------


def _tensor_load(found: re.Match[str]) -> Mark:
    return Mark(
        "load", "load of a tensor" if "tensor<" in found.string else "load of one value", _masked("," in found[1])
    )


def _tensor_store(found: re.Match[str]) -> Mark:
    one = "store of a tensor" if "tensor<" in found.string else "store of one value"
    return Mark("store", one, _masked(found[1].count(",") > 1))


def _masked(is_masked: bool) -> str:
    return "masked" if is_masked else ""


TENSOR_IR: tuple[Rule, ...] = (
    (re.compile(r"\btt\.load ([^:{]*)"), _tensor_load),
    (re.compile(r"\btt\.store ([^:{]*)"), _tensor_store),
    (
        re.compile(r"\bamdg(?:pu)?\.buffer_load (?:%\S+?\[[^\]]*\])([^:{]*)"),
        lambda m: Mark("load", "load of a tensor through a buffer descriptor", _masked("," in m[1])),
    ),
    (
        re.compile(r"\bamdg(?:pu)?\.buffer_store %\S+, %\S+?\[[^\]]*\]([^:{]*)"),
        lambda m: Mark("store", "store of a tensor through a buffer descriptor", _masked("," in m[1])),
    ),
    _rule(r"\btt\.descriptor_(?:load|gather)\b", "load", "load of a tile through a tensor descriptor"),
    _rule(r"\btt\.descriptor_(?:store|scatter|reduce)\b", "store", "store of a tile through a tensor descriptor"),
    _rule(r"\btt\.atomic_", "atomic", "atomic operation on a tensor"),
    _rule(r"\btt\.dot(?:_scaled)?\b", "tensor", "matrix product"),
    _rule(r"\bttng\.warp_group_dot\b ", "tensor", "matrix product by a group of four warps (wgmma)"),
    _rule(r"\bttng\.tc_gen5_mma(?:_scaled)?\b", "tensor", "matrix product into tensor memory (tcgen05)"),
    _rule(r"\bttng\.warp_group_dot_wait\b", "barrier", "waits for matrix products under way"),
    _rule(r"\bttng\.tmem_(?:alloc|load|store|copy)\b", "layout", "between registers and tensor memory"),
    _rule(r"\bttn?g\.async_tma_(?:copy_global_to_local|gather)\b", "async", "asynchronous tile copy (TMA)"),
    _rule(
        r"\bttn?g\.async_tma_copy_local_to_global\b|\bttng\.async_tma_(?:scatter|reduce)\b",
        "store",
        "asynchronous tile store (TMA)",
    ),
    (
        re.compile(r"\bttg\.async_copy_global_to_local\b(.*?)[{:]"),
        lambda m: Mark("async", "asynchronous copy to shared memory", _masked(" mask " in m[1])),
    ),
    _rule(r"\bamdg(?:pu)?\.buffer_load_to_local\b", "async", "asynchronous copy to shared memory"),
    _rule(r"\bttg\.convert_layout\b", "layout", "layout conversion"),
    _rule(r"\bttg\.local_alloc\b *%", "layout", "puts a tensor into shared memory"),
    _rule(r"\bttg\.local_alloc\b", "shared", "reserves shared memory"),
    _rule(r"\bttg\.local_load\b", "layout", "shared memory to registers"),
    _rule(r"\bttg\.local_store\b", "layout", "registers to shared memory"),
    _rule(r"\"tt\.(?:reduce|scan)\"", "shuffle", "reduction or scan across lanes"),
    _rule(r"\b(?:tt|ttg|ttng)\.(?:gather|histogram)\b", "shuffle", "exchange across lanes"),
    _rule(r"\bttn?g\.(?:async_wait|wait_barrier|async_tma_store_wait)\b", "barrier", "waits for asynchronous copies"),
    _rule(r"\bttg\.barrier\b|\bgpu\.barrier\b|\bttg\.local_barrier\b", "barrier", "barrier of the program's threads"),
)

# -- PTX -----------------------------------------------------------------------------------------------------------

_PREDICATE = re.compile(r"^\s*(?:@!?[%$]\w+\s+)?")
_PTX_OPCODES = frozenset(
    "ld st cp mma wmma wgmma tcgen05 ldmatrix stmatrix atom red shfl redux bar barrier mbarrier".split()
)
_PTX_ACCESS = re.compile(r"\b(ld|st)\.([\w:]+(?:\.[\w:]+)*?)\.(?:v(\d)\.)?[busf](\d+)\b")


def _ptx(text: str) -> Mark | None:
    code = _PREDICATE.sub("", text)
    opcode = code.split(None, 1)[0].split(".")[0] if code.strip() else ""
    if opcode not in _PTX_OPCODES:
        return None
    found = _first(PTX, code) or _ptx_access(code)
    return replace(found, condition="predicated") if found and len(code) < len(text.lstrip()) else found


def _ptx_access(code: str) -> Mark | None:
    found = _PTX_ACCESS.search(code)
    if found is None:
        return None
    kind = "load" if found[1] == "ld" else "store"
    bits = int(found[3] or 1) * int(found[4])
    space = found[2].split(".")
    if "local" in space:
        return Mark("spill", f"{kind} of local memory, {bits} bit")
    if any(word.startswith("shared") for word in space):
        return _access(kind, bits, "shared memory")
    return _access(kind, bits) if "global" in space else None


PTX: tuple[Rule, ...] = (
    (
        re.compile(r"\bcp\.async\.c[ag]\..*\], 0x([0-9a-f]+)(, %?\$?\w+)?"),
        lambda m: Mark("async", f"asynchronous copy, {int(m[1], 16) * 8} bit", "predicated" if m[2] else ""),
    ),
    _rule(r"\bcp\.async\.bulk\.tensor\S*\.shared\S*\.global\b", "async", "asynchronous tile copy (TMA)"),
    _rule(r"\bcp\.async\.bulk\.tensor\S*\.global\.shared|\bcp\.reduce\.async\.bulk", "store", "tile store (TMA)"),
    _rule(r"\bcp\.async\.bulk\.(?:shared|global)", "async", "asynchronous bulk copy"),
    _rule(r"\bcp\.async\.(?:bulk\.)?wait_(?:group|all)", "barrier", "waits for asynchronous copies"),
    _rule(r"\bwgmma\.mma_async\b", "tensor", "tensor-core instruction (wgmma)"),
    _rule(r"\bwgmma\.wait_group\b", "barrier", "waits for tensor-core instructions"),
    _rule(r"\btcgen05\.mma\b", "tensor", "tensor-core instruction (tcgen05)"),
    _rule(r"\btcgen05\.(?:ld|st|cp)\b", "layout", "between registers and tensor memory"),
    _rule(r"\bw?mma\.(?:sync|mma)\b", "tensor", "tensor-core instruction (mma)"),
    _rule(r"\bldmatrix\b", "shared", "matrix load from shared memory (ldmatrix)"),
    _rule(r"\bstmatrix\b", "shared", "matrix store to shared memory (stmatrix)"),
    _rule(r"\b(?:atom|red)\.(?!async)\S*\.?shared", "atomic", "atomic operation on shared memory"),
    _rule(
        r"\b(?:atom|red)\.\S*global|\batom\.\S+ |\bred\.(?:relaxed|release|gpu|sys)\S* ", "atomic", "atomic operation"
    ),
    _rule(r"\b(?:shfl|redux)\.sync\b", "shuffle", "shuffle between lanes"),
    _rule(r"\b(?:bar|barrier)\.(?:cta\.|cluster\.)?(?:sync|red|arrive|wait)\b", "barrier", "barrier"),
    _rule(r"\bmbarrier\.try_wait\b|\bmbarrier\.test_wait\b", "barrier", "waits for an asynchronous copy"),
)

# -- LLVM IR: inline PTX, or LLVM's own operations -------------------------------------------------------------------

_ASM = re.compile(r'\basm (?:sideeffect )?(?:alignstack )?"([^"]*)"')
_LLVM_ACCESS = re.compile(
    r"= load (?:volatile )?(.+?), ptr addrspace\((\d)\)|\bstore (?:volatile )?(.+?) \S+, ptr addrspace\((\d)\)"
)
_BUFFER = re.compile(r"@llvm\.amdgcn\.(?:raw|struct)\.(?:ptr\.)?buffer\.(load|store)\.(lds|\w+)")
_LLVM_HINT = re.compile(r"\basm\b|@llvm\.(?:nvvm|amdgcn)|\bload |\bstore |atomicrmw|cmpxchg")
_SPACES = {"1": "", "3": "shared memory", "5": "local memory"}  # fmt: skip


def _llvm(text: str) -> Mark | None:
    if not _LLVM_HINT.search(text) or text.startswith(("declare", "attributes", ";")):
        return None
    if found := _ASM.search(text):
        parts = re.split(r"\\0A(?:\\09)?|;", found[1])
        return next((m for part in parts if (m := _ptx(part.strip().replace("$", "%")))), None)
    if found := _BUFFER.search(text):
        if found[2] == "lds":
            return Mark("async", "asynchronous copy to shared memory")
        return _access(found[1], _bits(found[2]))
    if found := _LLVM_ACCESS.search(text):
        kind, kept = ("load", found[1]) if found[1] else ("store", found[3])
        space = _SPACES.get(found[2] or found[4])
        if space is None:
            return None
        if space == "local memory":
            return Mark("spill", f"{kind} of local memory, {_bits(kept)} bit")
        return _access(kind, _bits(kept), space)
    return _first(LLVM, text)


_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}


def _bits(kind: str) -> int:
    """Of an LLVM type: `<4 x i32>`, `float`, or as a name's ending writes them, `v4i32`, `f32`."""
    if vector := re.match(r"<(\d+) x (\w+)", kind):
        return int(vector[1]) * _bits(vector[2])
    if vector := re.match(r"v(\d+)(\w+)", kind):
        return int(vector[1]) * _bits(vector[2])
    if number := re.match(r"(?:i|f|bf)(\d+)$", kind):
        return max(8, int(number[1]))
    return next((bits for name, bits in _BITS.items() if kind.startswith(name)), 32)


LLVM: tuple[Rule, ...] = (
    _rule(r"@llvm\.nvvm\.shfl\.|@llvm\.nvvm\.redux|@llvm\.amdgcn\.(?:ds\.bpermute|update\.dpp|mov\.dpp|permlane|ds\.swizzle)",
          "shuffle", "shuffle between lanes"),
    _rule(r"@llvm\.nvvm\.barrier|@llvm\.amdgcn\.s\.barrier", "barrier", "barrier"),
    _rule(r"@llvm\.nvvm\.cp\.async\.(?:bulk\.)?wait", "barrier", "waits for asynchronous copies"),
    _rule(r"@llvm\.nvvm\.mbarrier\.(?:try|test)\.wait", "barrier", "waits for an asynchronous copy"),
    _rule(r"@llvm\.nvvm\.cp\.async\.bulk\.tensor\.g2s", "async", "asynchronous tile copy (TMA)"),
    _rule(r"@llvm\.nvvm\.ldmatrix|@llvm\.nvvm\.stmatrix", "shared", "matrix load or store of shared memory"),
    _rule(r"@llvm\.nvvm\.(?:mma|wgmma|tcgen05\.mma)|@llvm\.amdgcn\.(?:mfma|smfmac|wmma)", "tensor",
          "tensor-core instruction"),
    _rule(r"@llvm\.amdgcn\.\S*load\S*\.lds", "async", "asynchronous copy to shared memory"),
    _rule(r"\batomicrmw\b|\bcmpxchg\b|@llvm\.nvvm\.atomic", "atomic", "atomic operation"),
)  # fmt: skip

# -- SASS ----------------------------------------------------------------------------------------------------------

_SASS = re.compile(r"/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)")
_WIDTH = re.compile(r"\.(?:[US]?)(8|16|64|128|256)\b")


def _sass(text: str) -> Mark | None:
    found = _SASS.search(text)
    if found is None or found[1] == "@!PT":  # never executed: padding that the hardware asks for
        return None
    name, rest = found[2], found[3]
    width = _WIDTH.search(rest)
    bits = int(width[1]) if width else 32
    made: Mark | None
    if name in ("LDG", "STG", "LD", "ST"):
        made = _access("load" if name.startswith("LD") else "store", bits)
    elif name in ("LDS", "STS"):
        made = _access("load" if name.startswith("LD") else "store", bits, "shared memory")
    elif name in ("LDL", "STL"):
        made = Mark("spill", f"{'load' if name == 'LDL' else 'store'} of local memory, {bits} bit")
    elif name == "LDGSTS":
        made = Mark("async", f"asynchronous copy, {bits} bit")
    else:
        made = _first(SASS, name + rest)
    return replace(made, condition="predicated") if made and found[1] else made


SASS: tuple[Rule, ...] = (
    _rule(r"^(?:UTMALDG|UBLKCP)", "async", "asynchronous tile copy (TMA)"),
    _rule(r"^(?:UTMASTG|UTMAREDG|UBLKRED)", "store", "tile store (TMA)"),
    _rule(r"^(?:HGMMA|IGMMA|QGMMA|BGMMA)", "tensor", "tensor-core instruction (wgmma)"),
    _rule(r"^UTC\w*MMA", "tensor", "tensor-core instruction (tcgen05)"),
    _rule(r"^(?:HMMA|IMMA|DMMA|QMMA|OMMA|BMMA)", "tensor", "tensor-core instruction (mma)"),
    _rule(r"^(?:LDTM|STTM|UTCCP)", "layout", "between registers and tensor memory"),
    _rule(r"^(?:LDSM|STSM)", "shared", "matrix load or store of shared memory"),
    _rule(r"^ATOMS", "atomic", "atomic operation on shared memory"),
    _rule(r"^(?:ATOMG?|RED|REDG)(?:\.|$)", "atomic", "atomic operation"),
    _rule(r"^(?:SHFL|C?REDUX)", "shuffle", "shuffle between lanes"),
    _rule(r"^SYNCS\.PHASECHK", "barrier", "waits for an asynchronous copy"),
    _rule(r"^(?:LDGDEPBAR|DEPBAR|WARPGROUP\.DEPBAR)", "barrier", "waits for copies or instructions under way"),
    _rule(r"^(?:BAR|UCGABAR)", "barrier", "barrier"),
)

# -- AMD's assembly --------------------------------------------------------------------------------------------------

_AMD_BITS = {
    **dict.fromkeys("ubyte sbyte byte u8 i8 b8".split(), 8),
    **dict.fromkeys("ushort sshort short u16 i16 b16".split(), 16),
    "dwordx2": 64,
    "b64": 64,
    "dwordx3": 96,
    "b96": 96,
    "dwordx4": 128,
    "b128": 128,
}
_AMD_ACCESS = r"\b(global|buffer|flat|scratch|ds)_(load|store|read|write)2?(?:st64)?_(\w+?)(?:_d16(?:_hi)?)?\b"


def _amd_access(found: re.Match[str]) -> Mark:
    kind = "load" if found[2] in ("load", "read") else "store"
    bits = _AMD_BITS.get(found[3], 32)
    if found[1] == "scratch":
        return Mark("spill", f"{kind} of scratch memory, {bits} bit")
    return _access(kind, bits, "shared memory" if found[1] == "ds" else "")


AMDGCN: tuple[Rule, ...] = (
    _rule(r"\b(?:global|buffer)_load_lds_|\bbuffer_load_\w+ .*\blds\b", "async", "asynchronous copy to shared memory"),
    _rule(r"\b(?:global|buffer|flat|ds)_(?:atomic|add_rtn|cmpst|cmpswap)", "atomic", "atomic operation"),
    (re.compile(_AMD_ACCESS), _amd_access),
    _rule(r"\bv_(?:mfma|smfmac|wmma|swmmac)", "tensor", "tensor-core instruction (mfma)"),
    _rule(r"\bds_(?:bpermute|permute|swizzle)|_dpp\b|\bv_permlane", "shuffle", "shuffle between lanes"),
    _rule(r"\bs_barrier", "barrier", "barrier"),
)  # fmt: skip


def _spill_comment(text: str) -> Mark | None:
    return Mark("spill", "a register is kept elsewhere") if "Folded Spill" in text or "Folded Reload" in text else None
