"""What writes pages from the results of campaigns."""

from __future__ import annotations

from typing import Any

from lab.farm import report as farm
from lab.faultlab import report as faultlab
from lab.framework_kills import report as frameworks
from lab.hostile import page as hostile
from tests import ROOT
from tests.support.links import lost
from tests.support.rows import rows

CAMPAIGNS = (faultlab, farm, frameworks, hostile)


@rows("campaign", CAMPAIGNS, ids=lambda campaign: campaign.__name__)
def test_the_page_of_a_campaign_is_not_kept_and_its_links_lead_to_pages_that_are(
    campaign: Any,
) -> None:
    assert campaign.PAGE.parent == ROOT / "var" / "reports"
    assert lost(campaign.INTRODUCTION, campaign.PAGE) == []
