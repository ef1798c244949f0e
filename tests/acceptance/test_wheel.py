"""The wheel alone, in an environment of its own: what is in it, that it runs, and that its types are seen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE_ROOTS = ("services", "schemas", "infra", "replay")
NOT_SHIPPED = {"__pycache__", ".mypy_cache", ".ruff_cache"}


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command's outcome; it sees none of the paths of the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # nats-server comes as a script of a dependency: lent like the others, whether or not PATH names the environment.
    environment["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), environment.get("PATH", os.defpath)))
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def succeeded(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    succeeded(run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT))
    (built,) = folder.glob("lamina-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the dependencies are lent by the one that runs the tests."""
    venv = tmp_path_factory.mktemp("clean") / "venv"
    python = venv / "bin" / "python"
    if shutil.which("uv"):
        succeeded(run("uv", "venv", "--no-project", "--python", sys.executable, venv, cwd=venv.parent))
        install: list[str | Path] = ["uv", "pip", "install", "--python", python]
    else:
        succeeded(run(sys.executable, "-m", "venv", venv, cwd=venv.parent))
        install = [python, "-m", "pip", "install"]
    succeeded(run(*install, "--no-deps", "--no-index", wheel, cwd=venv.parent))
    site = Path(
        succeeded(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=venv)).strip()
    )
    # A path line is not searched for .pth files in turn, so the editable install of the checkout is not lent.
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "lent.pth").write_text("\n".join(sorted(lent)) + "\n", encoding="utf-8")
    return venv


def test_wheel_holds_the_product_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    expected = {
        path.relative_to(ROOT / root).as_posix()
        for root in SOURCE_ROOTS
        for path in (ROOT / root / "lamina").rglob("*")
        if path.is_file() and not NOT_SHIPPED & set(path.parts)
    }
    info = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"

    assert {name for name in names if not name.startswith(f"{info}/")} == expected
    assert "lamina/py.typed" in names
    assert f"{info}/licenses/LICENSE" in names


def test_wheel_is_what_runs(installed: Path) -> None:
    code = "import lamina.errors, lamina.bus; print(lamina.errors.__file__, lamina.bus.__file__, sep='\\n')"
    origins = succeeded(run(installed / "bin" / "python", "-c", code, cwd=installed)).splitlines()

    assert [Path(origin).is_relative_to(installed) for origin in origins] == [True, True]


def test_command_works_from_the_wheel(installed: Path) -> None:
    assert "usage" in succeeded(run(installed / "bin" / "lamina", "--help", cwd=installed)).lower()


def test_demo_plays_from_the_wheel(installed: Path) -> None:
    """The bundled session is data of the package: a wheel without it would install and fail."""
    played = json.loads(succeeded(run(installed / "bin" / "lamina", "demo", "--json", cwd=installed)))

    assert played["unsettled"] == ""
    assert all(answer["hits"]["items"] for answer in played["answers"])


def test_consumer_sees_the_types(installed: Path, tmp_path: Path) -> None:
    consumer = tmp_path / "consumer.py"
    consumer.write_text(
        "from lamina.errors import LaminaError, TooLarge\n"
        "\n"
        "error = TooLarge('2 bytes, at most 1')\n"
        "wider: LaminaError = error\n"
        "reveal_type(error)\n"
        "number: int = error\n",
        encoding="utf-8",
    )
    python = installed / "bin" / "python"

    result = run(
        *(
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-incremental",
            "--python-executable",
            python,
            consumer,
        ),
        cwd=tmp_path,
    )

    first, second = [line.split(": ", 1)[1] for line in result.stdout.splitlines() if line.startswith("consumer.py")]
    assert first == 'note: Revealed type is "lamina.errors.TooLarge"'
    assert second.startswith('error: Incompatible types in assignment (expression has type "TooLarge"')
