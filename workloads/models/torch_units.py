"""Which modules of a model are wrapped one by one: what ``--wrap`` means."""

from __future__ import annotations

from collections import defaultdict

from torch import nn

from refusals import OptionError

_MILLION = 1_000_000
_SHOWN = 8


def wrapped(model: nn.Module, policy: str) -> list[nn.Module]:
    """The modules that a policy picks, in the order of the model; none lies within another.

    ``auto``: the model's own ``blocks``, else the class of modules with parts of their own that repeats and holds most
    parameters, else the model's parts that have any. ``CLASSNAME``: every module of that class. ``size:MILLIONS``:
    modules that, without those within them, have at least so many parameters. OptionError: a class that the model does
    not have, a size that is none.
    """
    if policy == "auto":
        return list(getattr(model, "blocks", None) or _repeated(model) or filter(_count, model.children()))
    return _large(model, _size(policy)) if policy.startswith("size:") else _of_class(model, policy)


def _repeated(model: nn.Module) -> list[nn.Module]:
    classes: dict[type[nn.Module], list[nn.Module]] = defaultdict(list)
    for module in list(model.modules())[1:]:
        if not isinstance(module, nn.ModuleList | nn.ModuleDict | nn.Sequential) and any(
            True for _ in module.children()
        ):
            classes[type(module)].append(module)
    several = [_outermost(found) for found in classes.values()]
    return max((found for found in several if len(found) > 1), key=lambda found: sum(map(_count, found)), default=[])


def _of_class(model: nn.Module, name: str) -> list[nn.Module]:
    found = [module for module in list(model.modules())[1:] if type(module).__name__ == name]
    if not found:
        names = sorted({type(module).__name__ for module in list(model.modules())[1:] if _count(module)})
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise OptionError(
            f"The model has no module of a class {name} to wrap.", f"It has {', '.join(names[:_SHOWN])}{more}."
        )
    return _outermost(found)


def _large(model: nn.Module, least: int) -> list[nn.Module]:
    """Innermost first, as torch's size-based policy of FSDP1 does; then in the model's order."""
    taken: set[nn.Module] = set()

    def left(module: nn.Module) -> int:
        """Parameters that no picked module holds, after picking what is large enough within."""
        own = sum(parameter.numel() for parameter in module.parameters(recurse=False))
        total = own + sum(left(child) for child in module.children())
        if module is model or total < least or isinstance(module, nn.ModuleList | nn.ModuleDict):
            return total
        taken.add(module)
        return 0

    left(model)
    return [module for module in model.modules() if module in taken]


def _size(policy: str) -> int:
    try:
        millions = float(policy.removeprefix("size:"))
    except ValueError:
        millions = 0.0
    if not 0 < millions < float("inf"):
        raise OptionError(f"--wrap {policy} makes no sense.", "Write a number of millions, as in --wrap size:5.")
    return int(millions * _MILLION)


def _outermost(found: list[nn.Module]) -> list[nn.Module]:
    inner = {part for module in found for part in list(module.modules())[1:]}
    return [module for module in found if module not in inner]


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
