"""Free text of published runs."""

from __future__ import annotations

import pytest

from meshscope.advisor.candidate import Candidate
from meshscope.advisor.numerics import numerics
from meshscope.advisor.remarks import remarked

PLAIN = Candidate("DDP", "torch", "torch", 1024, 1, numerics("amp"))


@pytest.mark.parametrize(
    ("said", "optimizer"),
    [
        ("", "adamw"),
        ("fused AdamW", "adamw"),
        ("bitsandbytes 8-bit Adam", "adam8bit"),
        ("paged_adamw_8bit", "adam8bit"),
        ("Adafactor", "adafactor"),
        ("SGD with momentum 0.9", "sgd-momentum"),
        ("plain SGD", "sgd"),
        ("Llama on a million tokens, millions of them", "adamw"),
    ],
)
def test_an_optimizer_is_known_by_its_name(said: str, optimizer: str) -> None:
    assert remarked(PLAIN, {"other_opts": said}).optimizer == optimizer


def test_a_loss_in_pieces_and_buckets_that_are_viewed_are_known_by_their_names() -> None:
    assert remarked(PLAIN, {"notes": "Liger kernels"}).is_logits_chunked
    assert remarked(PLAIN, {"other_opts": "chunked cross-entropy"}).is_logits_chunked
    assert not remarked(PLAIN, {"notes": "cross-entropy in fp32"}).is_logits_chunked
    assert remarked(PLAIN, {"other_opts": "gradient_as_bucket_view=True"}).is_bucket_view
    assert not remarked(PLAIN, {"other_opts": "gradient_as_bucket_view=False"}).is_bucket_view
