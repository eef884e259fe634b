"""Not finite: a loss or parameters that are NaN or infinite, and stay so.

Fires where the newest loss of a rank, or its newest sum of parameters, is no finite number. Nothing heals a parameter
that is none, so all that is trained from there on is lost. A step that overflows and is skipped is no pitfall: the
next ones are finite again.
"""

from __future__ import annotations

from meshscope.analysis.findings.rule import Finding, Rule
from meshscope.analysis.not_finite import not_finite as _not_finite
from meshscope.run import Run

_FIX = """# before optimizer.step(), and with a lower lr:
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
# bf16 has the range of fp32; fp16 needs torch.amp.GradScaler:
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = loss_function(model(batch))
torch.autograd.set_detect_anomaly(True)  # slow: names the operation"""
_FIX_JAX = """# with a lower learning rate:
optimizer = optax.chain(
    optax.clip_by_global_norm(1.0), optax.adamw(learning_rate))
# bfloat16 has the range of float32, float16 needs a loss scale
# JAX_DEBUG_NANS=True in the environment (slow): names the operation"""


def not_finite(run: Run) -> tuple[Finding, ...]:
    found = _not_finite(run)
    if not found.evidence:
        return ()
    return (
        Finding(
            code=FINDING.code,
            title=found.words,
            evidence=found.evidence,
            advice="What is trained from there on is lost: go back to a checkpoint from before it. The usual causes "
            "are a learning rate that is too high, gradients that are not clipped, and fp16 that overflows.",
            fix=_FIX_JAX if run.experiment.framework == "jax" else _FIX,
            ranks=found.ranks,
            is_grave=True,
        ),
    )


FINDING = Rule("not-finite", not_finite)
