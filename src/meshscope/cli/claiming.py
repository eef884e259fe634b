"""``meshscope analyze --claim``: is a published step time possible at all?"""

from __future__ import annotations

import sys
from pathlib import Path

import click


def claimed(text: str, paths: tuple[Path, ...], *, is_json: bool) -> int:
    """Prints the verdict with its arithmetic. Raises InputError for a claim that cannot be read."""
    from meshscope.analysis.claims import claim, judgement
    from meshscope.analysis.model_flops import Shape, tied_shape
    from meshscope.capture.scripts import options_module
    from meshscope.discovery import bundled
    from meshscope.reports.columns import encodable
    from meshscope.reports.efficiency_text import claim_lines, claim_values
    from meshscope.units import printable

    if paths:
        raise click.UsageError("--claim is about a published number: leave PATH out.")
    shapes: dict[str, tuple[Shape, int]] = {}
    module = options_module(bundled("workloads"))
    for name, preset in module.PRESETS.items():
        shape = tied_shape(layers=preset.layers, width=preset.width, vocab=preset.vocab, seq=preset.seq)
        shapes[name] = shape, module.parameter_count(preset)
    # Claims are about transformers; other models do not have the parameters that theirs would.
    presets = {name: shape for name, (shape, parameters) in shapes.items() if shape.parameters == parameters}
    found = judgement(claim(text, presets))
    if is_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(claim_values(found)), indent=1).decode())
    else:
        lines = "\n".join(printable(line) for line in claim_lines(found))
        click.echo(encodable(lines, getattr(sys.stdout, "encoding", None) or "utf-8"))
    return 0
