"""The exceptions of factcheck; each message says what, which and how to mend, on one line, behind a code.

FactcheckError
├─ UserError                   F1..  the user's mistake: printed without a traceback, exit status 2
│  ├─ ConfigError              F110
│  │  ├─ UnknownNameError      F111  lists the nearest and the known names
│  │  └─ MissingExtraError     F112  gives the pip install line
│  ├─ InputError               F120  a file or a row that cannot be used
│  ├─ CorpusError              F130
│  │  └─ HashMismatchError     F131
│  ├─ OutputError              F140
│  └─ PromptError              F150
├─ PluginError                 F200  carries the plugin; raised from its cause
│  ├─ PluginLoadError          F210
│  ├─ PluginConflictError      F211
│  ├─ PluginIncompatibleError  F212
│  └─ PluginContractError      F213  a component broke its role's contract
├─ StageError                  F300  one item of one stage failed; the run goes on
│  ├─ DecomposeError           F310
│  ├─ RetrievalError           F320
│  │  ├─ TransientError        F321  may succeed when tried again
│  │  ├─ RateLimitedError      F322  may succeed later
│  │  └─ PermanentError        F323  will not succeed
│  ├─ JudgeError               F330
│  └─ CheckerError             F340
└─ RunError                    F400  the run could not finish: exit status 3
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class FactcheckError(Exception):
    """Base of all errors; ``hint`` says how to mend."""

    code: ClassVar[str] = "F000"

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = " ".join(message.split())
        self.hint = " ".join(hint.split())
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}" + (f" {self.hint}" if self.hint else "")


class UserError(FactcheckError):
    """A mistake of the user, printed on one line without a traceback."""

    code = "F100"


class ConfigError(UserError):
    """A setting or flag that cannot be used."""

    code = "F110"


class UnknownNameError(ConfigError):
    """A name that nothing registered."""

    code = "F111"

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        guess = f"Did you mean '{near[0]}'? " if near else ""
        listing = f"Known: {', '.join(names)}." if names else f"No {kind} is known."
        super().__init__(f"no {kind} named '{name}'.", hint=f"{guess}{listing} {hint}")
        self.name = name


class MissingExtraError(ConfigError):
    """An optional package that is needed and not installed."""

    code = "F112"

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the package '{package}', which is not installed.",
            hint=f"Run: pip install 'factcheck[{extra}]'",
        )
        self.package = package
        self.extra = extra


class InputError(UserError):
    """An input file or row that cannot be used."""

    code = "F120"


class CorpusError(UserError):
    """A corpus that is missing, empty or malformed."""

    code = "F130"


class HashMismatchError(CorpusError):
    """A corpus file whose hash differs from its manifest."""

    code = "F131"


class OutputError(UserError):
    """An output that cannot be written."""

    code = "F140"


class PromptError(UserError):
    """A prompt that is missing, malformed or cannot be rendered."""

    code = "F150"


class PluginError(FactcheckError):
    """A plugin that cannot be used; ``plugin`` is its entry-point name."""

    code = "F200"

    def __init__(self, message: str, *, plugin: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin


class PluginLoadError(PluginError):
    """A plugin that failed while it was imported or while it registered."""

    code = "F210"


class PluginConflictError(PluginError):
    """A plugin that registered a name it does not own."""

    code = "F211"


class PluginIncompatibleError(PluginError):
    """A plugin written for another version of the plugin interface."""

    code = "F212"


class PluginContractError(PluginError):
    """A component that broke the contract of its role."""

    code = "F213"


class StageError(FactcheckError):
    """A failure of one item in one stage."""

    code = "F300"


class DecomposeError(StageError):
    """An answer that could not be split into claims."""

    code = "F310"


class RetrievalError(StageError):
    """A query that failed at a retriever."""

    code = "F320"


class TransientError(RetrievalError):
    """A failure that may pass when tried again."""

    code = "F321"


class RateLimitedError(RetrievalError):
    """A refusal because of a rate limit; ``retry_after`` is in seconds, None if unknown."""

    code = "F322"

    def __init__(self, message: str, *, retry_after: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class PermanentError(RetrievalError):
    """A failure that will not pass."""

    code = "F323"


class JudgeError(StageError):
    """A claim that could not be judged."""

    code = "F330"


class CheckerError(StageError):
    """A checker that failed on a claim."""

    code = "F340"


class RunError(FactcheckError):
    """A run that could not finish."""

    code = "F400"
