"""Register the clinical checkers."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)

_NEEDS = ("pint", "Stemmer")


@hookimpl
def factcheck_register_checkers(register: Register) -> None:
    """Register the checkers ``clinical/…``, one for each kind of mention."""
    register("clinical/dosing", "factcheck.checkers.dosing:DosingChecker", needs=_NEEDS)
    register("clinical/thresholds", "factcheck.checkers.thresholds:ThresholdChecker", needs=_NEEDS)
    register("clinical/assertion", "factcheck.checkers.assertion:AssertionChecker", needs=_NEEDS)
    register("clinical/triage", "factcheck.checkers.triage:TriageChecker", needs=_NEEDS)
    register("clinical/certainty", "factcheck.checkers.certainty:CertaintyChecker", needs=_NEEDS)
    register("clinical/citations", "factcheck.checkers.citations:CitationChecker", needs=_NEEDS)
