"""Finding a tree, its release and its digest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kvlint.loading import LoadError, Tree, find_tree
from kvlint.loading.tree import digest_of, find_version

from . import minitree

INSIDE = ("", "sglang", "sglang/srt", "sglang/srt/disaggregation", "sglang/srt/disaggregation/nixl")


@pytest.mark.parametrize("below", [*INSIDE, f"sglang/{minitree.CONN}"])
def test_every_place_in_a_tree_leads_to_its_package(tree: Path, below: str) -> None:
    assert find_tree(tree / below) == Tree(tree / "sglang")


@pytest.mark.parametrize("below", ["", "python", "python/sglang", "python/sglang/srt"])
def test_a_checkout_holds_its_package_below_python(tmp_path: Path, below: str) -> None:
    checkout = tmp_path / "sglang"
    minitree.write(checkout / "python")
    assert find_tree(checkout / below) == Tree(checkout / "python" / "sglang")


def test_paths_stay_as_the_user_wrote_them(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    assert find_tree(Path("tree/sglang/srt/disaggregation")).package == Path("tree/sglang")
    assert find_tree(Path("tree")).package == Path("tree/sglang")


def test_the_current_folder_may_be_deep_inside(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "sglang" / "srt" / "disaggregation")
    assert find_tree(Path()).package.samefile(tree / "sglang")


@pytest.mark.parametrize("name", ["sglang-0.5.14-py3-none-any.whl", "main.zip"])
def test_an_archive_is_to_be_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(LoadError, match=f"{name}: an archive cannot be explored; unpack it"):
        find_tree(tmp_path / name)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="nowhere: there is no such file or folder"):
        find_tree(tmp_path / "nowhere")


def test_a_folder_without_sglang_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"there is no NIXL backend here\. Give an SGLang checkout"):
        find_tree(tmp_path)


def test_an_sglang_without_the_backend_is_said_to_be_one(tree: Path) -> None:
    shutil.rmtree(tree / "sglang" / "srt" / "disaggregation" / "nixl")
    with pytest.raises(LoadError, match=r"this sglang has no NIXL backend: there is no .*nixl.conn\.py"):
        find_tree(tree)


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("_version.py", "version: str\n__version__ = version = '0.5.14'\n__commit_id__ = None\n", "0.5.14"),
        ("version.py", '__version__ = "0.5.2"\n', "0.5.2"),
        ("version.py", "from sglang._version import __version__, __version_tuple__\n", None),
        ("version.py", '    __version__ = "0.0.0.dev0"\n', None),
        ("unrelated.py", '__version__ = "1.0"\n', None),
    ],
)
def test_the_release_is_what_the_tree_says(tree: Path, name: str, text: str, version: str | None) -> None:
    (tree / "sglang" / name).write_text(text)
    assert find_version(find_tree(tree)) == version


@pytest.mark.parametrize(
    ("text", "version"), [("Name: sglang\nVersion: 0.5.16\n\ntext", "0.5.16"), ("Name: x\n", None)]
)
def test_the_release_may_stand_in_the_metadata_of_the_distribution(tree: Path, text: str, version: str | None) -> None:
    metadata = tree / "sglang-0.5.16.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(text)
    assert find_version(find_tree(tree)) == version


def test_the_digest_is_of_names_and_bytes_in_any_order() -> None:
    digest = digest_of({"a": b"1", "b": b"2"})
    assert digest == digest_of({"b": b"2", "a": b"1"})
    others = ({"a": b"1"}, {"a": b"2", "b": b"1"}, {"a": b"1", "c": b"2"}, {"a": b"1", "b": b"3"})
    assert len({digest, *map(digest_of, others)}) == 5


def test_a_module_is_a_file_a_package_or_a_folder(tree: Path) -> None:
    found = find_tree(tree)
    (tree / "sglang" / "srt" / "compiled.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    assert found.source("sglang.srt.environ") == tree / "sglang/srt/environ.py"
    assert found.source("sglang.srt.disaggregation.base") == tree / "sglang/srt/disaggregation/base/__init__.py"
    assert found.source("sglang.srt.disaggregation") is None
    assert found.folder("sglang.srt.disaggregation") == tree / "sglang/srt/disaggregation"
    assert found.folder("sglang.srt.environ") is None
    known = ("sglang.srt.environ", "sglang.srt", "sglang.srt.compiled", "sglang.srt.nothing", "sglang.srt.environ.x")
    assert [found.has(name) for name in known] == [True, True, True, False, False]
