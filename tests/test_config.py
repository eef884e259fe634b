"""The user's configuration file: found, read, and refused in two lines where it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshscope import config
from meshscope.config import KernelRule, settings
from meshscope.errors import InputError

RULE = '[[kernels]]\npattern = "my_ring"\nkind = "collective"\n'


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_without_a_file_there_are_no_rules(tmp_path: Path) -> None:
    assert settings(environ={"XDG_CONFIG_HOME": str(tmp_path)}) == config.Settings()


def test_the_file_is_the_one_asked_for_else_the_variables_else_the_users_own(tmp_path: Path) -> None:
    own = written(tmp_path / "meshscope" / "config.toml", RULE)
    other = written(tmp_path / "other.toml", RULE)
    asked = written(tmp_path / "asked.toml", RULE)
    here = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert settings(environ=here).source == str(own)
    assert settings(environ=here | {"MESHSCOPE_CONFIG": str(other)}).source == str(other)
    assert settings(asked, here | {"MESHSCOPE_CONFIG": str(other)}).source == str(asked)
    home = written(tmp_path / ".config" / "meshscope" / "config.toml", RULE)
    assert settings(environ={"HOME": str(tmp_path)}).source == str(home)


def test_a_rule_says_what_it_says_and_has_a_name_in_any_case(tmp_path: Path) -> None:
    text = RULE + 'collective = "all_reduce"\nname = "our ring"\n' + '[[kernels]]\npattern = "^fill"\nkind = "copy"\n'
    found = settings(written(tmp_path / "c.toml", b"\xef\xbb\xbf" + text.encode()), {})
    assert found.kernels == (
        KernelRule("my_ring", "collective", "all_reduce", "our ring"),
        KernelRule("^fill", "copy", "", "your rule ^fill"),
    )


REFUSED = {
    "no TOML": ("kernels = [", "is no TOML"),
    "no UTF-8": (b"\xff\xfe\x00", "is no TOML"),
    "another table": ("[[rules]]\n", "nothing is called 'rules'"),
    "one bracket": ('[kernels]\npattern = "a"\n', "no list of tables"),
    "a number": ("[[kernels]]\npattern = 1\n", "rule 1: pattern is no text"),
    "another key": (RULE + 'colour = "red"\n', "rule 1 has a key 'colour'"),
    "no pattern": ('[[kernels]]\nkind = "compute"\n', "has no pattern"),
    "no kind": ('[[kernels]]\npattern = "a"\n', "it has no kind"),
    "unknown kind": ('[[kernels]]\npattern = "a"\nkind = "commm"\n', "no kind is called 'commm'"),
    "unknown collective": (RULE + 'collective = "allreduce"\n', "no collective is called 'allreduce'"),
    "collective of compute": (
        '[[kernels]]\npattern = "a"\nkind = "compute"\ncollective = "reduce"\n', "names a collective"),
    "bad regex": ('[[kernels]]\npattern = "a("\nkind = "compute"\n', "no regular expression"),
    "second rule": (
        RULE + '[[kernels]]\npattern = "(a+)+$"\nkind = "compute"\n', "rule 2: '(a+)+$' could take too long"),
    "too many rules": (RULE * 201, "has 201 rules"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_said_with_what_to_do(tmp_path: Path, case: str) -> None:
    text, why = REFUSED[case]
    with pytest.raises(InputError) as told:
        settings(written(tmp_path / "c.toml", text), {})
    assert why in told.value.message
    assert "c.toml" in told.value.message
    assert told.value.hint


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    for how in ((tmp_path / "none.toml", {}), (None, {"MESHSCOPE_CONFIG": str(tmp_path / "none.toml")})):
        with pytest.raises(InputError, match="does not exist"):
            settings(*how)


def test_a_folder_or_a_pipe_in_its_place_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    import os

    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="cannot be read"):
            settings(tmp_path / name, {})


def test_an_endless_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="larger than 1 MiB"):
        settings(written(tmp_path / "c.toml", b"#" * (1 << 21)), {})
