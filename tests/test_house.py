"""The house stays as drawn: arrows between rooms go up the list in docs/architecture.md only."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "qkv"

# What each room may use; the first that matches a module's name counts. A room may always use itself.
ALLOWED = {
    "errors": (),
    "axis": (),
    "store": ("errors",),
    "data": ("axis", "errors"),
    "layers": ("errors",),
    "kernels": (),
    "look.record": ("axis", "errors", "store", "look"),  # it shows itself, when asked to
    "look.trace": ("axis", "errors", "layers", "look.record"),
    "look.saliency": ("axis", "layers", "look.record"),
    "look.rollout": ("axis", "errors", "look.record"),
    "look.alignment": ("axis", "errors", "look.record"),
    "look.class_maps": ("axis", "errors", "layers", "look"),
    "look.mistakes": ("axis", "errors", "look", "store", "tasks"),
    "look.film_mistakes": ("look", "store", "tasks"),
    "look.pictures": ("axis", "data", "errors", "layers", "look"),
    "look.told": ("axis", "data", "errors", "look", "tasks"),
    "look.told_draw": ("axis", "errors", "look", "store"),
    "look.told_page": ("axis", "look", "store"),
    "models": ("axis", "errors", "layers", "store", "weights.names"),
    "weights.names": ("errors",),
    "weights": ("axis", "data", "decode", "errors", "models", "store", "tasks"),
    "decode": ("errors",),
    "tasks": (
        "axis",
        "data",
        "decode",
        "errors",
        "kernels",
        "layers",
        "models",
        "store",
        "look.record",
        "look.trace",
        "look.rollout",
        "look.alignment",
        "look.saliency",
    ),
    "look": ("axis", "errors", "tasks"),
    "train": ("errors", "models", "store", "tasks"),
    "studies.bias_rung": ("data", "layers", "studies", "tasks", "train"),  # it measures what one attention takes
    "studies": ("data", "errors", "look", "models", "store", "tasks", "train"),
    "demo": ("data", "look", "store", "tasks", "train"),
    "cli": ("data", "decode", "demo", "errors", "look", "store", "studies", "tasks", "train", "weights", "models"),
    "__main__": ("cli",),
    "": (),
}


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "qkv":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "qkv"}
    return {name.removeprefix("qkv").removeprefix(".") for name in found}


def inside(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda f: str(f.relative_to(SOURCE)))
def test_arrows_go_up_only(file):
    module = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix("__init__").removesuffix(".")
    room = next(room for room in ALLOWED if inside(module, room) or room == "")
    for used in imports(file):
        own = used.split(".")[0] == module.split(".")[0] and room == module.split(".")[0]
        assert own or inside(used, room) or any(inside(used, allowed) for allowed in ALLOWED[room]), (
            f"{module} uses {used}"
        )


def test_softmax_of_scores_stands_in_one_place():
    users = [f for f in SOURCE.rglob("*.py") if "scaled_dot_product_attention(" in f.read_text(encoding="utf-8")]
    assert [f.name for f in users] == ["attention.py"]


def test_the_command_line_answers_before_torch_is_imported():
    code = "import sys; from qkv.cli import main; main(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
