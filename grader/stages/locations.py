"""Which line of the learner's file each line of an intermediate language comes from.

Each reader takes a stage's text and the path that the file had when it was compiled, and gives the lines to show:
without the tables that say where they come from, which the learner sees as line numbers instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from grader.stages.mlir_locations import Frame, LocationTable, without_locations


@dataclass(frozen=True)
class Line:
    """One line of a stage. `lines` are 1-based lines of the learner's file: the innermost call first, then its callers.

    `library` names the line of a Triton function that was inlined there ("standard.py:43"); empty for the learner's own
    code.
    """

    text: str
    lines: tuple[int, ...] = ()
    library: str = ""


def read(stage: str, text: str, file: str, callers: Mapping[str, tuple[int, ...]] | None = None) -> list[Line]:
    """The lines of ttir, ttgir, llir, ptx, amdgcn or sass. `callers`: see `read_sass`."""
    if stage in ("ttir", "ttgir"):
        return read_mlir(text, file)
    if stage == "llir":
        return read_llvm(text, file)
    if stage == "sass":
        return read_sass(text, file, callers or {})
    return read_assembly(text, file)


def _line(text: str, frames: Sequence[Frame], file: str) -> Line:
    """`frames` innermost first. A frame knows only its file's name where the assembler's comment says no more."""
    known = [frame for frame in frames if frame.line > 0]
    own = tuple(dict.fromkeys(frame.line for frame in known if _same_file(frame.file, file)))
    first = known[0] if known else None
    library = "" if first is None or _same_file(first.file, file) else f"{PurePosixPath(first.file).name}:{first.line}"
    return Line(text, own, library)


def _same_file(name: str, file: str) -> bool:
    return name == file or ("/" not in name and name == PurePosixPath(file).name)


# -- TTIR and TTGIR ------------------------------------------------------------------------------------------------


def read_mlir(text: str, file: str) -> list[Line]:
    """MLIR with `loc(…)` at the end of each operation; an operation with a region has it after the closing brace."""
    table = LocationTable(text)
    lines: list[Line] = []
    open_regions: list[int] = []
    for raw in text.splitlines():
        if raw.startswith("#loc"):
            continue
        shown, location = without_locations(raw)
        frames = table.frames(location) if location else ()
        line = _line(shown, frames, file)
        stripped = shown.lstrip()
        if stripped.startswith("}") and open_regions:
            opener = open_regions.pop()
            if location:
                lines[opener] = Line(lines[opener].text, line.lines, line.library)
        if shown.endswith("{"):
            open_regions.append(len(lines))
        lines.append(line)
    return lines


# -- LLVM ----------------------------------------------------------------------------------------------------------

_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)\s*$")
_ATTACHED = re.compile(r",? !dbg !(\d+)")
_DEBUG_ONLY = re.compile(r"^!(?:\d+ = (?:distinct )?!DI|\d+ = !\{(?:(?:null|!\d+)(?:, )?)*\}$|llvm\.dbg\.cu)")


def read_llvm(text: str, file: str) -> list[Line]:
    """LLVM IR with `!dbg !12`, whose `!DILocation` is inlined at another one."""
    nodes: dict[str, tuple[str, dict[str, str]]] = {}
    for raw in text.splitlines():
        if found := _NODE.match(raw):
            fields = dict(re.findall(r'(\w+): ("[^"]*"|[^,]+)', found[3]))
            nodes[found[1]] = (found[2], fields)
    lines = []
    for raw in text.splitlines():
        if _DEBUG_ONLY.match(raw):
            continue
        attached = _ATTACHED.search(raw)
        frames = list(_llvm_frames(nodes, attached[1])) if attached else []
        lines.append(_line(_ATTACHED.sub("", raw), frames, file))
    return _trimmed(lines)


def _llvm_frames(nodes: dict[str, tuple[str, dict[str, str]]], number: str) -> Iterator[Frame]:
    """The frames of a location, innermost first."""
    seen: set[str] = set()
    while number in nodes and number not in seen:
        seen.add(number)
        kind, fields = nodes[number]
        if kind == "DISubprogram":
            yield Frame(_llvm_file(nodes, number), int(fields.get("line", "0")))
            return
        yield Frame(_llvm_file(nodes, fields.get("scope", "").lstrip("!")), int(fields.get("line", "0")))
        number = fields.get("inlinedAt", "").lstrip("!")


def _llvm_file(nodes: dict[str, tuple[str, dict[str, str]]], scope: str) -> str:
    _, fields = nodes.get(scope, ("", {}))
    _, found = nodes.get(fields.get("file", "").lstrip("!"), ("", {}))
    name, folder = found.get("filename", '""')[1:-1], found.get("directory", '""')[1:-1]
    return f"{folder}/{name}" if folder else name


# -- PTX and AMD's assembly ----------------------------------------------------------------------------------------

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+ \d+ \d+)(?:.*\binlined_at\s+(\d+ \d+ \d+))?")
_CALLER = re.compile(r"@\[ (.+?):(\d+):\d+")
_NOISE = re.compile(
    r"^\s*(?:\$?\.?L(?:__)?(?:tmp|func_begin|func_end)\d+:|// (?:begin|end) inline asm|; implicit-def|\.cfi_|$)"
)


def read_assembly(text: str, file: str) -> list[Line]:
    """PTX or AMDGCN with `.loc` before the instructions that come from there; debug sections are left out."""
    raws = text.splitlines()
    files = {m[1]: f"{m[2]}/{m[3]}" if m[3] else m[2] for raw in raws if (m := _FILE.match(raw))}
    callers: dict[str, str] = {}  # "file line column" to where it was last said to be inlined
    lines: list[Line] = []
    frames: list[Frame] = []
    skipping = False
    for raw in raws:
        stripped = raw.strip()
        if stripped.startswith(".section"):
            skipping = ".debug" in stripped
        elif skipping and stripped.startswith((".text", ".amdgpu_metadata")):
            skipping = False
        if skipping or _FILE.match(raw) or _NOISE.match(raw):
            continue
        if found := _LOC.match(raw):
            callers[found[1]] = found[2] or ""
            frames = list(_chain(found[1], callers, files))
            frames += [Frame(name, int(number)) for name, number in _CALLER.findall(raw)]
            continue
        if stripped.endswith("// -- End function") or stripped.startswith((".entry", ".visible", ".func", ".globl")):
            frames = []
        lines.append(_line(raw.expandtabs(4), frames if _instruction(stripped) else [], file))
    return _trimmed(lines)


def _chain(place: str, callers: Mapping[str, str], files: Mapping[str, str]) -> Iterator[Frame]:
    """The frames of a `.loc`, innermost first."""
    seen: set[str] = set()
    while place and place not in seen:
        seen.add(place)
        file, line, _ = place.split()
        yield Frame(files.get(file, ""), int(line))
        place = callers.get(place, "")


def _instruction(stripped: str) -> bool:
    return bool(stripped) and not stripped.startswith((".", "//", ";", "{", "}", ")", "$L")) and stripped[-1] != ":"


def library_callers(lines: Sequence[Line]) -> dict[str, tuple[int, ...]]:
    """For each line of a Triton function that was inlined: from which lines of the learner's file."""
    found: dict[str, dict[int, None]] = {}
    for line in lines:
        if line.library and line.lines:
            found.setdefault(line.library, {}).update(dict.fromkeys(line.lines))
    return {library: tuple(numbers) for library, numbers in found.items()}


# -- SASS ----------------------------------------------------------------------------------------------------------

_SASS_FILE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_SASS_INDENT = re.compile(r"^\s*(/\*[0-9a-f]+\*/)\s+")
_SASS_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/")


def read_sass(text: str, file: str, callers: Mapping[str, tuple[int, ...]]) -> list[Line]:
    """What `nvdisasm -gi -c` prints: comments with file and line before the instructions that come from there.

    The machine code keeps no inlining: `callers` (of the PTX) gives every place that a Triton function's line was
    inlined at. More than one means that the machine code does not say which.
    """
    lines: list[Line] = []
    frames: list[Frame] = []
    fresh = True  # the next comment starts a new chain
    for raw in text.splitlines():
        if found := _SASS_FILE.match(raw):
            frames = [] if fresh else frames
            fresh = False
            frames.append(Frame(found[1], int(found[2])))
            if found[3]:
                frames.append(Frame(found[3], int(found[4])))
            continue
        fresh = True
        if not _SASS_INSTRUCTION.match(raw):
            lines.append(Line(raw.expandtabs(4)))
            continue
        line = _line(_SASS_INDENT.sub(r"  \1 ", raw), frames, file)
        if not line.lines and line.library:
            line = Line(line.text, callers.get(line.library, ()), line.library)
        lines.append(line)
    return _trimmed(lines)


def _trimmed(lines: list[Line]) -> list[Line]:
    """Without empty lines at either end, and with one where there were several."""
    kept: list[Line] = []
    for line in lines:
        if line.text.strip() or (kept and kept[-1].text.strip()):
            kept.append(Line(line.text.rstrip(), line.lines, line.library))
    while kept and not kept[-1].text:
        kept.pop()
    return kept
