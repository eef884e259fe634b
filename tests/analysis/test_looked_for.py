"""What could be judged of a run, what not and why, and what is not about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from drawn import run, timeline

from meshscope.analysis.findings import rules
from meshscope.analysis.looked_for import ELSEWHERE, FOUND, JUDGED, UNTOLD, LookedFor, looked_for
from meshscope.analysis.looked_for_words import headline, sentences
from meshscope.run import Run

TWO = """
    0 step        aaaaaaaaaa
    0 compute     ####......
    0 all_reduce  ..####....
    1 step        aaaaaaaaaa
    1 compute     ####......
    1 all_reduce  ..####....
"""


def told(of: Run) -> dict[str, LookedFor]:
    return {one.code: one for one in looked_for(of)}


def of(framework: str, **about: Any) -> Run:
    drawn: Run = timeline(TWO)
    here = msgspec.structs.replace(drawn.experiment, framework=framework, ranks=2, **about)
    windows = tuple(replace(one, device_kind=about.get("device_kind", "gpu")) for one in drawn.windows)
    return replace(drawn, experiment=here, windows=windows)


def test_every_rule_is_told_of_once_with_words_of_its_own() -> None:
    found = looked_for(of("torch"))
    assert {one.code for one in found} == {rule.code for rule in rules()}
    assert len(found) == len({one.title for one in found})
    assert all("-" not in one.title or one.title != one.code for one in found)
    assert all(bool(one.why) == (one.state in (UNTOLD, ELSEWHERE)) for one in found)


def test_without_steps_and_device_work_nothing_is_called_not_found() -> None:
    found = looked_for(run([]))
    assert not any(one.state == FOUND for one in found)
    assert [one.title for one in found if one.state == JUDGED] == []
    assert headline(found).startswith("Nothing could be judged: ")
    assert "no trace of device work" in headline(found)
    assert not any(said.startswith("Looked for") for said in sentences(found))


def test_rules_of_one_framework_do_not_apply_to_the_other() -> None:
    torch, jax = told(of("torch")), told(of("jax"))
    assert (jax["exposed-tail"].state, jax["exposed-tail"].why) == (ELSEWHERE, "PyTorch only")
    assert (torch["synchronous-collectives"].state, torch["synchronous-collectives"].why) == (ELSEWHERE, "JAX only")
    assert "small-collectives" in {code for code, one in jax.items() if one.state == JUDGED}


def test_what_abstains_on_shared_cores_says_so_and_is_judged_elsewhere() -> None:
    crowded, roomy = told(of("torch", device_kind="cpu", cores=1)), told(of("torch", device_kind="cpu", cores=64))
    assert crowded["no-overlap"].state == UNTOLD
    assert "share their cores" in crowded["no-overlap"].why
    assert roomy["no-overlap"].state == JUDGED
    assert "Could not be judged: " in " ".join(sentences(tuple(crowded.values())))
