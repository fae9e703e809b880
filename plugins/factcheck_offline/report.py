"""Register the primitives over a report."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_primitives(register: Register) -> None:
    """Register the primitives ``report/…``."""
    register("report/contradicted_count.v1", "factcheck_offline.primitives:ContradictedCount")
    register("report/unsupported_share.v1", "factcheck_offline.primitives:UnsupportedShare")
    register("report/max_risk.v1", "factcheck_offline.primitives:MaxRisk")
    register("report/evidence_coverage.v1", "factcheck_offline.primitives:EvidenceCoverage")
