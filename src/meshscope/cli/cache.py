"""``meshscope cache``: where read traces are kept, and how much they take."""

from __future__ import annotations

import click


@click.command("cache")
@click.option("--clear", "is_clear", is_flag=True, help="Remove everything that is kept, compiled code too.")
def command(*, is_clear: bool) -> int:
    """Say where the columns of read traces are kept, so that a second opening is quick, and how much they take.

    \b
    MESHSCOPE_CACHE        another folder, or off
    MESHSCOPE_CACHE_LIMIT  the most to keep, such as 2GB (default: a tenth of the disk, 10 GB at most);
                           what was not used for longest is removed
    """
    from meshscope import fast
    from meshscope.errors import InputError
    from meshscope.readers.kept import usual
    from meshscope.units import counted, printable, size

    if is_clear:
        fast.forget()
    kept = usual()
    if kept is None:
        click.echo("The cache is off (MESHSCOPE_CACHE=off).")
        return 0
    where = printable(str(kept.folder))
    if not is_clear:
        click.echo(
            f"{where}: {counted(kept.count, 'trace')}, {size(kept.size_bytes)} of at most {size(kept.limit_bytes)}"
        )
        return 0
    try:
        count, freed = kept.count, kept.clear()
    except OSError as error:
        raise InputError(
            f"The cache {kept.folder} cannot be cleared: {error.strerror}.",
            hint="Check whose it is, or remove it by hand.",
        ) from error
    click.echo(f"{where}: cleared, {counted(count, 'trace')}, {size(freed)}")
    return 0
