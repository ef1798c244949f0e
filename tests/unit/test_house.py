"""The rules of the house that no linter knows, and proof that the import contracts bite."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lamina.cli.command import Command

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = ("services", "schemas", "infra", "replay")
TOP_LEVEL = {
    *(".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "pyproject.toml"),
    *SOURCE_ROOTS,
    *("benchmarks", "tests"),
}
MOST_LINES = 400
# Written so that this file does not match itself.
ELSEWHERE = re.compile(
    r"(?<![\w.~-])/(?:work|root|tmp)/|(?:pypi|npmjs|pythonhosted)[.](?:org|com)|pypi[.]python",
)

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ENTRY_POINTS = [
    EntryPoint(name, value, group)
    for group, points in {
        "console_scripts": PYPROJECT["project"]["scripts"],
        **PYPROJECT["project"].get("entry-points", {}),
    }.items()
    for name, value in points.items()
]


def own_files() -> list[Path]:
    """Every file that is, or is about to be, under version control."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what is ours cannot be told from what is made")
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def python_files() -> list[Path]:
    return [path for path in own_files() if path.suffix == ".py"]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_source_root_closes_the_namespace() -> None:
    """One `lamina/__init__.py` would hide the other three roots' packages."""
    assert [root for root in SOURCE_ROOTS if (ROOT / root / "lamina" / "__init__.py").exists()] == []


def test_every_package_says_that_it_is_one() -> None:
    folders = {path.parent for path in python_files() if "lamina" in path.relative_to(ROOT).parts}
    packages = {folder for folder in folders if folder.name != "lamina"}

    assert [relative(folder) for folder in sorted(packages) if not (folder / "__init__.py").is_file()] == []


def test_types_are_checked_everywhere() -> None:
    """mypy refuses a folder without Python files, so the list grows with the tree."""
    checked = set(PYPROJECT["tool"]["mypy"]["files"])

    assert {path.relative_to(ROOT).parts[0] for path in python_files()} - checked == set()


def test_modules_stay_small() -> None:
    modules = [path for path in python_files() if path.relative_to(ROOT).parts[0] != "tests"]
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}

    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def has_code(text: str) -> bool:
    body = ast.parse(text).body
    return not all(isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) for part in body)


def test_annotations_are_never_evaluated() -> None:
    line = "from __future__ import annotations"
    texts = {relative(path): path.read_text(encoding="utf-8") for path in python_files()}

    assert [name for name, text in texts.items() if has_code(text) and line not in text.splitlines()] == []


def test_no_machine_or_registry_is_named() -> None:
    found = [
        f"{relative(path)}:{number}: {match[0]}"
        for path in own_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if (match := ELSEWHERE.search(line))
    ]

    assert found == []


def test_the_top_level_is_the_agreed_one() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in own_files()} - TOP_LEVEL == set()


def test_test_files_have_names_of_their_own() -> None:
    names = [path.name for path in python_files() if path.name.startswith("test_")]

    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@pytest.mark.parametrize("point", ENTRY_POINTS, ids=lambda point: f"{point.group}:{point.name}")
def test_entry_point_resolves(point: EntryPoint) -> None:
    loaded = point.load()

    assert isinstance(loaded, Command) if point.group == "lamina.commands" else callable(loaded)


BREACHES = {
    "schemas-import-infra": ("schemas/lamina/errors.py", "import lamina.store"),
    "infra-imports-client": ("infra/lamina/store/__init__.py", "import lamina.client"),
    "client-imports-service": ("services/lamina/client/planted.py", "import lamina.query"),
    "service-imports-service": ("services/lamina/query/planted.py", "import lamina.journal"),
    "fold-reads-clock": ("services/lamina/journal/fold.py", "import time"),
    "fold-knows-bus": ("services/lamina/journal/fold.py", "from lamina.bus import port"),
    "decide-opens-file": ("services/lamina/atoms/decide.py", "import pathlib"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The four source roots and the contracts, to be spoilt."""
    for path in python_files():
        if path.relative_to(ROOT).parts[0] in SOURCE_ROOTS:
            target = tmp_path / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(copy: Path) -> subprocess.CompletedProcess[str]:
    run = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"
    roots = [str(copy / root) for root in SOURCE_ROOTS]
    # -S keeps the editable install's own source roots from being found beside the copy.
    libraries = [path for path in sys.path if "site-packages" in path]
    code = f"import sys; sys.path[:0] = {roots + libraries!r}; {run}"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_import_contracts_hold(copy: Path) -> None:
    result = lint_imports(copy)

    assert result.returncode == 0, result.stdout + result.stderr


def ensure_package(folder: Path) -> None:
    """Some breaches need a package that another version of the tree may not have."""
    if folder.name != "lamina":
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()


@pytest.mark.parametrize(("module", "statement"), BREACHES.values(), ids=BREACHES)
def test_import_contract_bites(copy: Path, module: str, statement: str) -> None:
    path = copy / module
    imported = statement.split()[1]
    importer = ".".join(path.relative_to(copy).with_suffix("").parts[1:]).removesuffix(".__init__")
    ensure_package(path.parent)
    if imported.startswith("lamina.") and not list(copy.glob(f"*/{imported.replace('.', '/')}")):
        ensure_package(copy / "services" / imported.replace(".", "/"))
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{statement}\n")

    result = lint_imports(copy)

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{importer} -> {imported}" in result.stdout
