"""What the files around the package say of it is true: workflows, citation, policies and the links between pages."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

import statewise

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
YAML = [*WORKFLOWS, ROOT / ".github" / "dependabot.yml", ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
NOT_RUN = "# Written, not yet run: this repository has had no GitHub runner so far.\n"
# A run step's `make test TORCH=cpu`, `python path.py`; `python -m` is a module.
MAKE, SCRIPT = re.compile(r"\bmake ([a-z][a-z-]*)"), re.compile(r"\bpython (?!-)(\S+)")
#: The papers that the library is built on, by their keys in papers.bib.
PAPERS = (
    "dieng2018noisin",
    "wang2019state",
    "chen2019generalization",
    "karamzade2020regularizing",
    "ziv2019depth",
)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pinned(name: str) -> str:
    """The version of a package in constraints.txt."""
    found = re.search(rf"^{name}==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert found is not None, name
    return found.group(1)


def steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in read(workflow)["jobs"].values():
        yield from job["steps"]


def matrix() -> dict[str, list[str]]:
    found: dict[str, list[str]] = read(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["test"]["strategy"][
        "matrix"
    ]
    return found


def commands() -> str:
    """All that the workflows run, and the command that cibuildwheel runs for them."""
    runs = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    return "\n".join([*runs, project()["tool"]["cibuildwheel"]["test-command"].replace("{project}/", "")])


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_every_yaml_file_parses(path: Path) -> None:
    assert isinstance(read(path), dict)


def test_every_workflow_says_that_it_has_not_been_run_and_may_only_read_by_default() -> None:
    assert {path.stem for path in WORKFLOWS} == {"tests", "wheels", "docs"}
    for path in WORKFLOWS:
        assert path.read_text(encoding="utf-8").startswith(NOT_RUN), path.name
        assert read(path)["permissions"] == {"contents": "read"}, path.name


def test_the_matrix_has_the_pythons_that_the_package_names() -> None:
    about = project()["project"]
    classified = [name.rsplit(" ", 1)[1] for name in about["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    assert matrix()["python"] == classified
    assert about["requires-python"] == f">={classified[0]}"
    governed = (ROOT / "GOVERNANCE.md").read_text(encoding="utf-8")
    assert f"Today: {classified[0]} to {classified[-1]}." in governed
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f":linux,{' '.join(classified)})" in makefile
    assert f"$(addprefix {classified[-1]}:" in makefile


def test_the_matrix_has_the_lowest_torch_and_the_pinned_one() -> None:
    (lowest,) = [found[1] for name in project()["project"]["dependencies"] if (found := re.match("torch>=(.+)", name))]
    assert matrix()["torch"] == [lowest, pinned("torch")]
    # The steps of a job are chosen by the pinned version, too.
    chosen = [
        step["if"]
        for step in steps(ROOT / ".github" / "workflows" / "tests.yml")
        if "matrix.torch" in step.get("if", "")
    ]
    assert len(chosen) == 2
    assert all(f"'{pinned('torch')}'" in condition for condition in chosen)
    assert f"Today: {lowest} or newer." in (ROOT / "GOVERNANCE.md").read_text(encoding="utf-8")


def test_every_target_and_every_script_that_a_workflow_calls_exists() -> None:
    called = commands()
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    made, scripts = set(MAKE.findall(called)), set(SCRIPT.findall(called))
    assert {"test", "docs", "check-install", "check-lowest"} <= made
    assert scripts
    missing = sorted(made - targets) + sorted(script for script in scripts if not (ROOT / script).is_file())
    assert missing == []


def test_the_hook_runs_the_ruff_that_the_tests_run() -> None:
    (hooks,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert hooks["rev"] == f"v{pinned('ruff')}"
    assert [hook["id"] for hook in hooks["hooks"]] == ["ruff-check", "ruff-format"]


def test_the_citation_has_what_its_format_requires_and_the_version_of_the_package() -> None:
    found = read(ROOT / "CITATION.cff")
    assert {"authors", "cff-version", "message", "title"} <= found.keys()
    assert found["cff-version"] == "1.2.0"
    assert found["type"] == "software"
    about = project()["project"]
    assert found["version"] == statewise.__version__
    assert (found["license"], found["authors"]) == (about["license"], about["authors"])


def test_the_citation_refers_to_the_papers_as_the_bibliography_has_them() -> None:
    source = (ROOT / "statewise" / "papers.bib").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", source, flags=re.MULTILINE | re.DOTALL))
    references = read(ROOT / "CITATION.cff")["references"]
    assert len(references) == len(PAPERS)
    for key, reference in zip(PAPERS, references, strict=True):
        fields = dict(re.findall(r"^  (\w+) *= \{(.*?)\},$", entries[key], flags=re.MULTILINE | re.DOTALL))
        authors = " and ".join(f"{each['family-names']}, {each['given-names']}" for each in reference["authors"])
        said = {"author": authors, "title": reference["title"], "year": str(reference["year"])}
        for identifier in reference.get("identifiers", ()):
            said["eprint"] = identifier["value"].removeprefix("arXiv:")
        if "start" in reference:
            said["pages"] = f"{reference['start']}--{reference['end']}"
        if "collection-title" in reference:
            said["booktitle"] = reference["collection-title"]
        if "institution" in reference:
            said["school"] = reference["institution"]["name"]
        assert said == {name: " ".join(value.split()) for name, value in fields.items() if name != "archiveprefix"}


def links(page: Path) -> Iterator[str]:
    """The targets of the links and pictures of a page, without those to elsewhere."""
    for block in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        for token in block.children or ():
            target = str(token.attrGet("href") or token.attrGet("src") or "").partition("#")[0]
            if target and not re.match(r"[a-z]+:", target):
                yield target


def test_every_link_from_a_page_to_a_file_finds_it() -> None:
    found = {page: list(links(page)) for page in PAGES}
    names = [path.name for path in PAGES if path.parent == ROOT]
    assert {"CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "GOVERNANCE.md", "README.md", "SECURITY.md"} <= set(names)
    linked = set(found[ROOT / "README.md"])
    assert {"CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "GOVERNANCE.md", "SECURITY.md", "CITATION.cff"} <= linked
    lost = [f"{page.name}: {to}" for page, all_of in found.items() for to in all_of if not (page.parent / to).exists()]
    assert lost == []


def test_nothing_in_the_package_reads_a_pickle() -> None:
    """What SECURITY.md says of files: no module that unpickles is imported, and torch's and numpy's readers do not."""
    faults = []
    for path in sorted((ROOT / "statewise").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            unpickles = {name.split(".")[0] for name in names} & {
                "pickle",
                "cloudpickle",
                "dill",
                "joblib",
                "marshal",
                "shelve",
            }
            called = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if (
                unpickles
                or called.startswith("torch.load(")
                or (called.startswith(("np.load(", "numpy.load(")) and "allow_pickle=False" not in called)
            ):
                faults.append(f"{path.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
    assert faults == []
    assert (ROOT / "statewise" / "py.typed").is_file()
