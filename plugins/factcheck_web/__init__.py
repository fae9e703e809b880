"""Register the retrievers ``web/…``: search services, literature, drug labels, trials and citations over the network."""

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_retrievers(register: Register) -> None:
    """Register one retriever for each service."""
    register("web/serper", "factcheck_web.serper:SerperRetriever")
    register("web/brave", "factcheck_web.brave:BraveRetriever")
    register("web/tavily", "factcheck_web.tavily:TavilyRetriever")
    register("web/searxng", "factcheck_web.searxng:SearxngRetriever")
    register("web/pubmed", "factcheck_web.pubmed:PubmedRetriever")
    register("web/europepmc", "factcheck_web.europepmc:EuropePmcRetriever")
    register("web/openfda", "factcheck_web.openfda:OpenFdaRetriever")
    register("web/medlineplus", "factcheck_web.medlineplus:MedlinePlusRetriever")
    register("web/clinicaltrials", "factcheck_web.clinicaltrials:ClinicalTrialsRetriever")
    register("web/citations", "factcheck_web.citations:CitationRetriever")
