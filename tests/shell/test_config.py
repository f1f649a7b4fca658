from pathlib import Path

import pytest

from kvlint.config import ConfigError, ProtocolOverride, default_config, find_config, load_config, read_config
from kvlint.registry import is_selected, require_known

EVERYTHING = """
[tool.kvlint]
select = ["kvl001", "KVL9"]
extend-select = ["KVL006"]
ignore = ["kvl901"]
exclude = ["vendored/"]
per-file-ignores = { "tests/*" = ["kvl001"] }
roots = ["python", "/srv/lib"]

[[tool.kvlint.protocol]]
status-enum = "pkg.Phase"
failure = ["BROKEN", "LATE"]
success = "ARRIVED"
opening = ["NEW"]
table = "rooms"
writer = "set_phase"
reader = "phase_of"
terminal-helpers = ["give_up"]
room-tables = ["peers"]
failure-recorder = "note_failure"
"""


def written(folder: Path, text: str, name: str = "pyproject.toml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def refusal(folder: Path, text: str, name: str = "pyproject.toml") -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(written(folder, text, name))
    return str(caught.value).removeprefix(str(folder / name) + ": ")


def test_every_key(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, EVERYTHING))
    assert config.select == ("KVL001", "KVL9")
    assert config.extend_select == ("KVL006",)
    assert config.ignore == ("KVL901",)
    assert config.exclude == ("vendored/",)
    assert config.per_file_ignores == {"tests/*": ("KVL001",)}
    assert config.root_folders == (str(tmp_path / "python"), "/srv/lib")
    assert config.protocol == (
        ProtocolOverride(
            status_enum="pkg.Phase",
            failure=("BROKEN", "LATE"),
            success=("ARRIVED",),
            opening=("NEW",),
            table="rooms",
            writer="set_phase",
            reader="phase_of",
            terminal_helpers=("give_up",),
            room_tables=("peers",),
            failure_recorder="note_failure",
        ),
    )
    assert config.folder == str(tmp_path)


def test_a_file_of_its_own_needs_no_table(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, 'ignore = ["KVL001"]\n[[protocol]]\ntable = "rooms"\n', "kvlint.toml"))
    assert config.ignore == ("KVL001",)
    assert config.protocol[0].table == "rooms"


def test_the_nearest_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    outer = written(tmp_path, "[tool.kvlint]\n")
    assert find_config(str(inner / "x.py")) == outer
    # A pyproject.toml without our table, even a broken one, is not ours.
    written(inner, "[tool.ruff]\n")
    written(tmp_path / "a", "[[[")
    assert find_config(str(inner)) == outer
    own = written(inner, "", "kvlint.toml")
    assert find_config(str(inner)) == own
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(inner)
    assert load_config(str(elsewhere)).file == outer
    assert default_config().file is None


def test_without_a_file_the_current_one_and_then_the_defaults_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert load_config(str(tmp_path / "there")) == default_config()
    own = written(tmp_path / "here", "", "kvlint.toml")
    assert load_config(str(tmp_path / "there")).file == own


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.kvlint]\nselct = []", "unknown key 'selct' in [tool.kvlint]; did you mean 'select'?"),
        ("[tool.kvlint]\nextend_select = []", "unknown key 'extend_select' in [tool.kvlint]; did you mean"),
        ("[tool.kvlint]\nxyzzy = 1", "unknown key 'xyzzy' in [tool.kvlint]; the keys are select, extend-select"),
        ("[tool.kvlint]\nfile = 'x'", "unknown key 'file' in [tool.kvlint]"),
        ("[tool.kvlint]\nselect = 'KVL001'", "'select': expected array, got str in [tool.kvlint]"),
        ("[tool.kvlint]\nignore = [1]", "'ignore[0]': expected str, got int in [tool.kvlint]"),
        ("[tool.kvlint]\nper-file-ignores = []", "'per-file-ignores': expected object, got array"),
        ("[[tool.kvlint.protocol]]\ntabel = 'x'", "unknown key 'tabel' in [[tool.kvlint.protocol]]; did you mean"),
        ("[[tool.kvlint.protocol]]\ntable = 1", "'protocol[0].table': expected str, got int"),
        ("[tool.kvlint]\nprotocol = 3", "'protocol': expected array, got int"),
        ("[tool.kvlint]\nprotocol = [3]", "'protocol[0]': expected object, got int"),
        ("[tool]\nkvlint = 3", "tool.kvlint must be a table"),
        ("[tool.other]\n# kvlint", "has no [tool.kvlint] table"),
        ("tool = 3 # kvlint", "has no [tool.kvlint] table"),
        ("[tool.kvlint", "is not valid TOML: "),
    ],
)
def test_mistakes_name_the_key(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text).startswith(message)


def test_mistakes_in_a_file_of_its_own(tmp_path: Path) -> None:
    assert refusal(tmp_path, "selct = []", "kvlint.toml") == "unknown key 'selct'; did you mean 'select'?"
    assert refusal(tmp_path, "[[protocol]]\nx = 1", "kvlint.toml").startswith("unknown key 'x' in [[protocol]]")
    (tmp_path / "kvlint.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_config(str(tmp_path / "kvlint.toml"))
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read: No such file"):
        read_config(str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    ("text", "code", "default", "runs"),
    [
        ("", "KVL001", True, True),
        ("", "KVL006", False, False),
        ("extend-select = ['KVL006']", "KVL006", False, True),
        ("extend-select = ['KVL006']", "KVL001", True, True),
        ("select = ['KVL006']", "KVL001", True, False),
        ("select = ['KVL']", "KVL006", False, True),
        ("ignore = ['KVL0']", "KVL001", True, False),
        ("select = ['KVL001']\nignore = ['KVL0']", "KVL001", True, True),
        ("select = ['KVL0']\nignore = ['KVL001']", "KVL001", True, False),
        ("select = ['KVL001']\nignore = ['KVL001']", "KVL001", True, False),
        ("select = []", "KVL001", True, False),
    ],
)
def test_selection(tmp_path: Path, text: str, code: str, default: bool, runs: bool) -> None:
    config = read_config(written(tmp_path, text, "kvlint.toml"))
    assert is_selected(code, default, config) is runs


def test_codes_must_exist() -> None:
    require_known(("KVL", "KVL9", "KVL900"), "here")
    for code in ("KVL77", "X", ""):
        with pytest.raises(ConfigError, match="here: no rule has the code"):
            require_known((code,), "here")
    with pytest.raises(ConfigError, match="did you mean KVL90"):
        require_known(("KVL9001",), "here")
