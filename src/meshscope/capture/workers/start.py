"""A rank's entry: ``python -m meshscope.capture.workers.start --recording=… --script=… -- FLAGS``.

Ties itself to its parent and moves its output to a file before anything heavy is imported, hands the script a watch
that records, and leaves a last word whichever way it ends.
"""

from __future__ import annotations

import argparse
import atexit
import faulthandler
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from meshscope.capture import lifeline
from meshscope.capture.causes import last_lines
from meshscope.capture.processes import STACKS
from meshscope.capture.workers import stalls, torch_flight
from meshscope.capture.workers.horizon import StepsEnough
from meshscope.capture.workers.post import Post
from meshscope.capture.workers.rank_journal import RankJournal
from meshscope.recording.entries import RankEnded
from meshscope.recording.layout import LOGS, read_experiment


def main(argv: Sequence[str] | None = None) -> NoReturn:
    # torchrun stands between the supervisor and its ranks, and tells them who they are by the environment.
    is_forked = "TORCHELASTIC_RUN_ID" in os.environ
    lifeline.tie_to(int(os.environ.get(lifeline.PARENT_VARIABLE, os.getppid())) if is_forked else os.getppid())
    asked = _parser().parse_args(argv)
    experiment = read_experiment(asked.recording)
    rank, local_rank = experiment.own_ranks.start, 0
    if is_forked:
        rank, local_rank = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK"))
    log = asked.recording / LOGS / f"rank{rank}.txt"
    _redirect(log)
    faulthandler.register(STACKS, all_threads=True)
    sys.path.insert(0, str(asked.script.parent))
    sys.argv = [str(asked.script), *asked.flags]
    journal = RankJournal(asked.recording, rank, t0_unix_ns=experiment.t0_unix_ns)
    stalls.listen(asked.recording, journal, *([torch_flight.dump] if experiment.framework == "torch" else []))
    journal.phase("importing")
    module = importlib.import_module("options")
    options = module.parse(asked.flags)
    counted = getattr(module, "counted_samples", None) or getattr(module, "samples", None)
    own = counted(options, rank, experiment.ranks) if is_forked and counted is not None else -1
    post = Post(asked.recording, experiment, journal, options, rank, local_rank, asked.check_every, own)
    _leave(_run(post, asked.script, log))


def _run(post: Post, script: Path, log: Path) -> int:
    try:
        watch = _watch(post)
        _train(_imported(script), post, watch)
    except BaseException as error:  # noqa: BLE001  # a rank's last word, whatever ended it
        if not (isinstance(error, SystemExit) and not error.code):
            return _fail(post, error, log)
    for rank in post.ranks:
        post.journal.append(RankEnded(t_ns=post.journal.now_ns(), rank=rank, exit_code=0))
    return 0


def _train(module: ModuleType, post: Post, watch: Any) -> None:
    """To its end, or to the step before which all ranks leave it."""
    try:
        module.train(post.options, watch)
    except StepsEnough:
        watch.finished()


def _fail(post: Post, error: BaseException, log: Path) -> int:
    traceback.print_exception(error)
    sys.stderr.flush()
    why = f"{type(error).__name__}: {error}".strip().splitlines()[0][:500]
    if post.experiment.nodes > 1 and (stuck := torch_flight.stuck_in()):
        why = f"in {stuck}: {why}"
    lines = last_lines(log)
    for rank in post.ranks:
        post.journal.append(RankEnded(t_ns=post.journal.now_ns(), rank=rank, exit_code=1, why=why, log_lines=lines))
    return 1


def _leave(code: int) -> NoReturn:
    """Not through the interpreter's own end: that costs torch a second of every rank, and a library that waits there
    for its peers would keep a failed one. What the script registered to be done at exit is done."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _watch(post: Post) -> Any:
    if post.experiment.framework == "torch":
        from meshscope.capture.workers.torch_watch import TorchWatch

        return TorchWatch(post)
    from meshscope.capture.workers.jax_watch import JaxWatch

    return JaxWatch(post)


def _imported(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python script")
    module = importlib.util.module_from_spec(spec)
    sys.modules[script.stem] = module
    spec.loader.exec_module(module)
    return module


def _redirect(log: Path) -> None:
    """Everything this process prints, from C++ too, goes to its log."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="start", allow_abbrev=False)
    parser.add_argument("--recording", type=Path, required=True)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--check-every", type=int, default=10)
    parser.add_argument("flags", nargs="*")
    return parser


if __name__ == "__main__":
    main()
