"""A package that is called as meshscope's own is, as many are."""

from models.linear import made

__all__ = ["made"]
