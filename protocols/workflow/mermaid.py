"""A workflow's drawing as Mermaid text. Must not know workflows."""

from __future__ import annotations

from tamis.protocols.workflow.drawing import Drawing

_SHAPES = {"input": ('(["', '"])'), "output": ('(["', '"])'), "node": ('["', '"]')}
_CLASSES = {
    "input": "fill:#eef2ff,stroke:#6366f1,color:#1e1b4b",
    "output": "fill:#ecfdf5,stroke:#10b981,color:#064e3b",
    "success": "fill:#f0fdf4,stroke:#16a34a,color:#14532d",
    "failed": "fill:#fef2f2,stroke:#dc2626,color:#7f1d1d",
    "skipped": "fill:#f8fafc,stroke:#94a3b8,color:#64748b,stroke-dasharray:4 3",
}


def mermaid(drawing: Drawing) -> str:
    """A flow chart; every name is quoted and escaped, so that none can be more than a name."""
    lines = [f"%% {_comment(drawing.title)}", "flowchart LR"]
    used: dict[str, list[str]] = {}
    for number, box in enumerate(drawing.boxes):
        opening, closing = _SHAPES[box.role]
        lines.append(f"  b{number}{opening}{'<br/>'.join(escaped(line) for line in box.lines)}{closing}")
        kind = class_of(box.role, box.status)
        if kind:
            used.setdefault(kind, []).append(f"b{number}")
    for arrow in drawing.arrows:
        label = f'|"{escaped(arrow.label)}"|' if arrow.label else ""
        lines.append(f"  b{arrow.source} -->{label} b{arrow.target}")
    for kind, names in used.items():
        lines.append(f"  classDef {kind} {_CLASSES[kind]}")
        lines.append(f"  class {','.join(names)} {kind}")
    return "\n".join(lines) + "\n"


def class_of(role: str, status: str) -> str:
    """How a box is coloured: by the interface, or by what a run made of it."""
    if role != "node":
        return role
    if status in ("", "pending", "running"):
        return ""
    return status if status in ("success", "skipped") else "failed"


def escaped(text: str) -> str:
    """A text inside a quoted label: everything that Mermaid or HTML reads as more than itself as a character code."""
    return "".join(char if char.isalnum() or char in " _-.,:/()→…" else f"#{ord(char)};" for char in text)


def _comment(text: str) -> str:
    # %%{ would begin a directive
    return " ".join(text.replace("{", "(").replace("}", ")").split())
