"""ptxas agrees on when each part of the language became available."""

import pytest

from ptxlab.isa.features import FEATURES
from ptxlab.isa.releases import RELEASES
from ptxlab.isa.targets import TARGETS, VERSIONS, Version
from ptxlab.toolchain import accepted, judge

from ..tools import each_release, ptxas_of

# A unified symbol is one of several modules, so ptxas asks for separate compilation.
_OPTIONS = {FEATURES["unified"].example: ("-c",)}


def _is_accepted(example: str, version: Version, target: str, release: str) -> bool:
    text = f".version {version[0]}.{version[1]}\n.target {target}\n{example}\n"
    return accepted(judge(text, tool=ptxas_of(release), options=_OPTIONS.get(example, ())))


def _home(version: Version) -> str:
    """The newest plain target of a version."""
    plain = [name for name, since in TARGETS.items() if since <= version and name[-1] not in "af" and name != "sm_101"]
    return max(plain, key=lambda name: int(name[3:]))


@pytest.mark.bulk(one_in=2)
@each_release
@pytest.mark.parametrize("name", FEATURES)
def test_features_begin_where_the_table_says(name: str, release: str) -> None:
    feature, newest = FEATURES[name], RELEASES[release]
    version, chip = feature.since.alternatives[0]
    assert _is_accepted(feature.example, version, _home(version), release) == (version <= newest)
    if version > VERSIONS[0]:
        earlier = VERSIONS[VERSIONS.index(version) - 1]
        assert not _is_accepted(feature.example, earlier, _home(earlier), release)
    lower = [target for target in TARGETS if target[-1] not in "af" and int(target[3:]) < chip.number]
    if lower:
        below = max(lower, key=lambda target: int(target[3:]))
        assert not _is_accepted(feature.example, max(version, (9, 0)), below, release)
    assert _is_accepted(feature.example, max(version, (9, 0)), str(chip), release) == (version <= newest)
