"""Which cores are used first."""

import pytest

from tcfuse.tuning.cores import by_distance


@pytest.fixture
def topology(tmp_path):
    """Two cores of two threads each, as Linux tells; of the fifth it tells nothing."""
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{siblings}\n")
    return tmp_path


def test_threads_of_one_core_come_after_other_cores(topology):
    assert by_distance([3, 2, 1, 0], topology) == (0, 1, 2, 3)
    assert by_distance({0, 2, 4}, topology) == (0, 4, 2)


def test_ranges_are_read(topology):
    for cpu in range(4):
        path = topology / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        path.write_text("0-1\n" if cpu < 2 else "2-3\n")
    assert by_distance(range(4), topology) == (0, 2, 1, 3)
