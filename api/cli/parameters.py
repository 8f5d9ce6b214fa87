"""Declare the parameters of a command as fields of a dataclass, including compile options from their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, TypeVar, cast, get_type_hints

import typer

from snnc.options.table import RULES, help_of

Arguments = TypeVar("Arguments")
_OPTION: Final = "option"
"""Metadata key of fields made by :func:`option`."""
_OPTIONS: Final = "options"
"""Metadata key of fields made by :func:`table_options`."""


def option(text: str, *flags: str, default: Any = None, **settings: Any) -> Any:
    """Return a dataclass field for an option with the help text `text`.

    `flags` are its names on the command line, by default the name of the field with dashes; `settings` are passed to ``typer.Option``.
    """
    return field(default=default, metadata={_OPTION: (flags, {"help": text, **settings})})


def table_options(*names: str, **texts: str) -> dict[str, dict[str, str | None]]:
    """Return metadata for a dataclass field that collects the values of compile options in a dictionary, by their Python names.

    `names` are the options in the order of the help, by default every option with a help text; `texts` replaces help texts by name.
    """
    chosen = names or tuple(name for name, rule in RULES.items() if rule.help)
    return {_OPTIONS: {name: texts.get(name) for name in chosen}}


def command(arguments: type[Arguments]) -> Callable[[Callable[[typer.Context, Arguments], None]], Callable[..., None]]:
    """Turn a function into a command whose parameters are the fields of the dataclass `arguments`.

    Each field has a typer annotation, or the metadata of :func:`option` or :func:`table_options`.
    """

    def decorated(function: Callable[[typer.Context, Arguments], None]) -> Callable[..., None]:
        tables = [f for f in fields(cast(Any, arguments)) if _OPTIONS in f.metadata]

        def run(context: typer.Context, **parameters: Any) -> None:
            values = {f.name: {name: parameters.pop(name) for name in f.metadata[_OPTIONS]} for f in tables}
            function(context, arguments(**parameters, **values))

        context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        run.__signature__ = Signature([context, *_parameters(arguments)])  # type: ignore[attr-defined]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return run

    return decorated


def _parameters(arguments: Any) -> Iterator[Parameter]:
    hints = get_type_hints(arguments, include_extras=True)
    for f in fields(arguments):
        if _OPTIONS in f.metadata:
            yield from _from_table(f.metadata[_OPTIONS])
            continue
        kind: Any = hints[f.name]
        if _OPTION in f.metadata:
            flags, settings = f.metadata[_OPTION]
            kind = Annotated[kind, typer.Option(*(flags or (f"--{f.name.replace('_', '-')}",)), **settings)]
        default = Parameter.empty if f.default is MISSING else f.default
        yield Parameter(f.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _from_table(texts: Mapping[str, str | None]) -> Iterator[Parameter]:
    for name, text in texts.items():
        rule = RULES[name]
        shown = typer.Option(f"--{rule.flag or name.replace('_', '-')}", help=text or help_of(name), metavar=rule.metavar)
        kind: Any = rule.type if rule.default is not None else rule.type | None
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=rule.default, annotation=Annotated[kind, shown])
