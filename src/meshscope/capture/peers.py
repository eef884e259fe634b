"""Which node a failure lies with, as far as one node can tell: it sees its own ranks and what they wait for."""

from __future__ import annotations

from meshscope.capture.causes import is_second_hand
from meshscope.capture.roster import Roster
from meshscope.experiment import Experiment
from meshscope.recording.entries import Ended
from meshscope.units import ranges


def waited_for(here: Experiment, roster: Roster) -> str:
    """What all ranks of this node wait in, and for which nodes; "" for one node, and where they are not in one place.

    The rank that is furthest behind here is not to blame then: it waits as the others do.
    """
    if here.nodes < 2:
        return ""
    leading = roster.leading
    if all(member.process is None for member in leading):
        return f"{_others(here)} did not come to {here.rendezvous}"
    places = {member.waits_in for member in leading}
    if len(places) > 1 or "" in places:
        return ""
    step = min(member.step for member in leading) + 1
    said = f"every rank of node {here.node_rank} waits in {places.pop()}, in step {step}, and so for {_others(here)}"
    return f"{said}: a rank there hangs, or the network between them is gone"


def named(here: Experiment, roster: Roster, ended: Ended) -> Ended:
    """A failure of several nodes with the node that it lies with: another one where ranks here only lost a peer."""
    if here.nodes < 2 or ended.outcome != "failed" or ended.rank < 0:
        return ended
    members = roster.members.values()
    said = [member.ended.why for member in members if member.ended is not None and member.ended.exit_code]
    dead = [member for member in members if member.ended is None and member.gone_ns >= 0]
    is_elsewhere = bool(said) and not dead and all(map(is_second_hand, said))
    whose = f"node {here.node_rank} has lost {_others(here)};" if is_elsewhere else f"node {here.node_rank}:"
    return Ended(t_ns=ended.t_ns, outcome=ended.outcome, rank=ended.rank, why=f"{whose} {ended.why}")


def _others(here: Experiment) -> str:
    """The other nodes: with two it is clear which one."""
    others = [node for node in range(here.nodes) if node != here.node_rank]
    return f"node {others[0]}" if len(others) == 1 else f"one of nodes {ranges(others)}"
