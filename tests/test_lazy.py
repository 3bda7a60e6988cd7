"""Packages import their names late: every name is found, no submodule hides one, and a command loads what it uses."""

from __future__ import annotations

import compileall
import pickle
import pkgutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import statewise
from statewise import lazy

ROOT = Path(statewise.__file__).parents[1]
FOUND = list(pkgutil.walk_packages(statewise.__path__, "statewise."))
PACKAGES = ["statewise", *(each.name for each in FOUND if each.ispkg)]
PUBLIC = [package for package in map(import_module, PACKAGES) if hasattr(package, "__all__")]
EVERY_PACKAGE = pytest.mark.parametrize("package", PUBLIC, ids=lambda package: package.__name__)
#: Names that a package and one of its modules have in common, such as the function statewise.bounds.certify.
SHARED = [
    (package.__name__, name)
    for package in PUBLIC
    for name in package.__all__
    if f"{package.__name__}.{name}" in {each.name for each in FOUND} and package is not statewise
]


def run(program: str) -> str:
    """What a program prints in a process of its own, where nothing is imported yet."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestEveryPackage:
    @EVERY_PACKAGE
    def test_every_name_of_the_list_is_found_and_shown(self, package: ModuleType) -> None:
        assert [name for name in package.__all__ if not hasattr(package, name)] == []
        assert set(package.__all__) <= set(dir(package))

    @EVERY_PACKAGE
    def test_another_name_is_refused_with_the_name_of_the_package(self, package: ModuleType) -> None:
        with pytest.raises(AttributeError, match=rf"^module '{package.__name__}' has no attribute 'nonsense'$"):
            _ = package.nonsense
        assert not hasattr(package, "__path_of_nonsense__")

    def test_importing_all_of_them_imports_nothing_else(self) -> None:
        program = f"import sys, {', '.join(PACKAGES)}\nprint(*sorted(sys.modules), sep='\\n')"
        loaded = run(program).splitlines()
        assert [name for name in loaded if name.startswith("statewise")] == sorted([*PACKAGES, "statewise.lazy"])
        assert not {"torch", "numpy"} & set(loaded)


class TestNamesThatAModuleHasToo:
    def test_the_name_wins_whichever_is_imported_first(self) -> None:
        assert ("statewise.bounds", "certify") in SHARED
        first = "".join(f"import {package}.{name}\n" for package, name in SHARED)
        then = "".join(f"from {package} import {name}\nprint(type({name}).__name__)\n" for package, name in SHARED)
        for program in (first + then, then + first + then):
            assert "module" not in run(program).split()

    @pytest.mark.parametrize(("package", "name"), SHARED, ids=[".".join(pair) for pair in SHARED])
    def test_the_module_is_there_by_its_full_name(self, package: str, name: str) -> None:
        module = import_module(f"{package}.{name}")
        assert isinstance(module, ModuleType)
        assert module.__name__ == f"{package}.{name}"
        assert not isinstance(getattr(import_module(package), name), ModuleType)

    def test_what_has_such_a_name_can_be_pickled(self) -> None:
        assert pickle.loads(pickle.dumps(statewise.bounds.certify)) is statewise.bounds.certify


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lazy package with a module, a name under another name, and one that is nowhere."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from statewise.lazy import lazy_imports\n"
        "if TYPE_CHECKING:\n"
        "    from made_up import inner\n"
        "    from made_up.inner import one as uno, gone\n"
        "__all__ = ['gone', 'inner', 'uno']\n"
        "lazy_imports(__name__)\n"
    )
    (folder / "inner.py").write_text("one = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    lazy._homes.cache_clear()
    for name in ("made_up", "made_up.inner"):
        sys.modules.pop(name, None)


class TestTheHelper:
    def test_names_come_from_the_imports_for_type_checkers(self, made_up: Path) -> None:
        package = import_module("made_up")
        assert "made_up.inner" not in sys.modules
        assert package.uno == 1
        assert package.inner is sys.modules["made_up.inner"]
        assert package.__dict__["uno"] == 1, "asked for once"
        with pytest.raises(AttributeError, match="module 'made_up' has no attribute 'one'"):
            _ = package.one

    def test_a_name_of_the_list_that_is_nowhere_is_missed(self, made_up: Path) -> None:
        with pytest.raises(AttributeError, match=r"module 'made_up\.inner' has no attribute 'gone'"):
            _ = import_module("made_up").gone

    def test_an_attribute_can_be_set_and_a_submodule_is_one(self, made_up: Path) -> None:
        package: Any = import_module("made_up")
        package.uno = 2
        import_module("made_up.inner")
        assert package.uno == 2
        assert package.__dict__["inner"] is sys.modules["made_up.inner"]

    def test_it_needs_no_source_code(self, made_up: Path) -> None:
        """As in a frozen program."""
        source = made_up / "__init__.py"
        compileall.compile_file(str(source), legacy=True, quiet=2)
        source.unlink()
        package = import_module("made_up")
        assert package.uno == 1
        assert not hasattr(package, "other")

    def test_a_module_that_is_no_public_name_is_an_attribute(self) -> None:
        assert run("import statewise\nprint(statewise.heads.crf.__name__)").split() == ["statewise.heads.crf"]

    def test_a_function_that_mentions_a_package_can_be_sent_to_another_process(self) -> None:
        cloudpickle = pytest.importorskip("ray.cloudpickle")
        sent = "import statewise\ndef function(): return statewise.bounds.certify.__name__\n"
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec(sent, scope)
        assert pickle.loads(cloudpickle.dumps(scope["function"]))() == "certify"
        assert pickle.loads(pickle.dumps(statewise.bounds)) is statewise.bounds


#: The most modules of statewise (of 700) that a command may load, a few more than it does; and whether it needs torch.
COMMANDS = {
    "--help": (6, False),
    "memory rank --inputs 3 --width 2 --steps 4 --depth 2": (56, False),
    "doctor --help": (70, True),
    "generate --help": (110, True),
    "certify --help": (260, True),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_only_what_it_uses(command: str) -> None:
    most, needs_torch = COMMANDS[command]
    program = (
        "import sys; from statewise.cli import main\n"
        f"try: main({command.split()!r})\n"
        "except SystemExit as stopped: assert not stopped.code\n"
        "print('modules:', *sys.modules)"
    )
    loaded = run(program).partition("modules: ")[2].split()
    assert ("torch" in loaded) is needs_torch
    ours = [name.split(".") for name in loaded if name.split(".")[0] == "statewise"]
    assert len(ours) <= most, Counter(name[1] if len(name) > 1 else "" for name in ours)
