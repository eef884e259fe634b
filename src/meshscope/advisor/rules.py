"""What practitioners go by, each rule with its threshold for this model and fabric, beside what was computed.

A rule is no part of the prediction: it is what somebody would say who has only a few numbers. Where it would choose
otherwise, both are shown, with the figures that made the difference.
"""

from __future__ import annotations

from collections.abc import Callable

from meshscope.advisor import rules_of_data, rules_of_models, rules_of_settings
from meshscope.advisor.balance import balance
from meshscope.advisor.ranking import Advice
from meshscope.advisor.rival import against
from meshscope.advisor.rule import Case, Rule, Saying

_ASKED: tuple[Callable[[Case], Saying | None], ...] = (
    rules_of_data.data_parallel_first,
    rules_of_data.gathers_hide,
    rules_of_data.shard_only_if_needed,
    rules_of_data.accumulation_and_sharding,
    rules_of_data.shard_within_a_node,
    rules_of_models.tensor_degree,
    rules_of_models.fsdp_beside_tensor,
    rules_of_models.pipeline_if_needed,
    rules_of_models.context_for_long,
    rules_of_models.experts_within_a_node,
    rules_of_models.by_scale,
    rules_of_settings.checkpoint_as_needed,
    rules_of_data.replicas_over_the_network,
    rules_of_settings.eight_bits,
    rules_of_settings.message_size,
    rules_of_settings.plausible,
)


def rules(advice: Advice) -> tuple[Rule, ...]:
    """Those that have something to say here."""
    case = Case(advice, balance(advice))
    sayings = (ask(case) for ask in _ASKED)
    return tuple(_judged(advice, saying) for saying in sayings if saying is not None)


def _judged(advice: Advice, saying: Saying) -> Rule:
    agrees, why = None, ""
    if saying.is_met is not None and advice.choice is not None:
        agrees = saying.is_met(advice.choice.candidate)
        why = "" if agrees else against(advice, saying.is_met)
    return Rule(saying.title, saying.threshold, saying.holds, saying.chooses, agrees, why, saying.source)
