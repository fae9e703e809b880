"""Allow-lists of domains, and a ready list of clinical authorities under the name ``authorities``.

The list holds bodies that answer for what they publish on health: public-health agencies, regulators of medicines,
bodies that write or assess guidelines, and the specialty societies whose guidelines are in wide use. Journals, news,
encyclopaedias, hospitals and companies are not on it as such; but a domain brings those below it, and so ``nih.gov`` brings
the articles of PubMed and PMC, and ``nhs.uk`` the trusts. Being on it says who speaks, not that each page is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator

from factcheck.net.guard import AddressRefusedError, parse_url

NAME = "authorities"

PUBLIC_HEALTH = (
    "who.int", "paho.org", "cdc.gov", "nih.gov", "medlineplus.gov", "cancer.gov", "hhs.gov", "ahrq.gov", "samhsa.gov",
    "hrsa.gov", "clinicaltrials.gov", "vaccines.gov", "womenshealth.gov", "ecdc.europa.eu", "health.ec.europa.eu",
    "nhs.uk", "nhs.scot", "nhsinform.scot", "ukhsa-dashboard.data.gov.uk", "publichealthscotland.scot", "phw.nhs.wales",
    "healthdirect.gov.au", "health.gov.au", "hc-sc.gc.ca", "phac-aspc.gc.ca", "canada.ca", "rki.de", "bzga.de",
    "santepubliquefrance.fr", "rivm.nl", "fhi.no", "folkhalsomyndigheten.se", "sst.dk", "thl.fi", "bag.admin.ch",
    "hse.ie", "iss.it", "sciensano.be", "health.govt.nz", "dh.gov.hk", "chp.gov.hk", "moh.gov.sg", "mhlw.go.jp", "icmr.gov.in",
)  # fmt: skip
REGULATORS = (
    "fda.gov", "dailymed.nlm.nih.gov", "ema.europa.eu", "mhra.gov.uk", "www.gov.uk", "medicines.org.uk", "tga.gov.au",
    "medsafe.govt.nz", "health-products.canada.ca", "bfarm.de", "pei.de", "ansm.sante.fr", "aifa.gov.it",
    "aemps.gob.es", "cbg-meb.nl", "lakemedelsverket.se", "hpra.ie", "swissmedic.ch", "pmda.go.jp", "hsa.gov.sg",
    "drugoffice.gov.hk",
)  # fmt: skip
GUIDELINES = (
    "nice.org.uk", "bnf.nice.org.uk", "sign.ac.uk", "uspreventiveservicestaskforce.org", "canadiantaskforce.ca",
    "cda-amc.ca", "iqwig.de", "g-ba.de", "awmf.org", "has-sante.fr", "icer.org", "magicevidence.org", "cochrane.org",
    "cochranelibrary.com", "nhmrc.gov.au", "sbu.se", "kce.fgov.be", "g-i-n.net", "brit-thoracic.org.uk",
    "resus.org.uk", "toxbase.org",
)  # fmt: skip
SOCIETIES = (
    "acc.org", "heart.org", "escardio.org", "diabetes.org", "easd.org", "endocrine.org",
    "thyroid.org", "kdigo.org", "kidney.org", "ginasthma.org", "goldcopd.org", "thoracic.org", "ersnet.org",
    "idsociety.org", "escmid.org", "aasld.org", "easl.eu", "gastro.org", "ueg.eu", "nccn.org", "asco.org",
    "esmo.org", "hematology.org", "ehaweb.org", "rheumatology.org", "eular.org", "aan.com", "ean.org",
    "psychiatry.org", "rcpsych.ac.uk", "aap.org", "rcpch.ac.uk", "acog.org", "rcog.org.uk", "figo.org", "aad.org",
    "bad.org.uk", "aao.org", "rcophth.ac.uk", "auanet.org", "uroweb.org", "aafp.org", "acponline.org", "rcgp.org.uk",
    "facs.org", "rcseng.ac.uk", "asahq.org", "sccm.org", "ilcor.org", "americangeriatrics.org", "worldallergy.org",
)  # fmt: skip

AUTHORITIES: tuple[str, ...] = tuple(dict.fromkeys((*PUBLIC_HEALTH, *REGULATORS, *GUIDELINES, *SOCIETIES)))

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+")


def _domains(value: Any) -> Any:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable):
        return value
    found: list[str] = []
    for item in value:
        if not isinstance(item, str):
            raise ValueError("a domain is a text, as in 'nice.org.uk'")
        found.extend(AUTHORITIES if item.strip().lower() == NAME else (_domain(item),))
    return tuple(dict.fromkeys(found))


def _domain(text: str) -> str:
    name = text.strip().lower().removeprefix("*.").removeprefix(".").rstrip(".")
    if not name.isascii():
        name = host_of(f"http://{name}/")  # as the hosts that it is compared with
    if not _DOMAIN.fullmatch(name):
        raise ValueError(f"'{text[:80]}' is no domain; write it as in 'nice.org.uk', without scheme and path")
    return name


Domains = Annotated[tuple[str, ...], BeforeValidator(_domains)]
"""An allow-list: domains, each with those below it; ``"authorities"`` stands for the list above, () allows all."""


def host_of(url: str) -> str:
    """Return the host of a URL in lower case and ASCII, "" for a URL that would not be fetched.

    The parser is that of the client, because where two parsers differ an address can pass for another.
    """
    try:
        return parse_url(url).raw_host.decode("ascii").lower().rstrip(".")
    except AddressRefusedError:
        return ""


def allowed(url: str, domains: Iterable[str]) -> bool:
    """Tell whether the host of ``url`` is one of ``domains`` or below one; an empty list allows every host."""
    listed = tuple(domains)
    host = host_of(url)
    return not listed or any(host == domain or host.endswith(f".{domain}") for domain in listed)
