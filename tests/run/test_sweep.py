"""Sweeps: every combination once, a journal that survives being killed, tables and files of results."""

import json
import subprocess
import sys
from concurrent.futures import Executor, Future

import pytest

from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.run import sweep, sweep_table
from roce_pkt.run.sweep import METRICS, Journal, Outcome, Sweep

SHORT = {"duration": "200us", "measure_from": "0us"}
VARY = {"switch.ecn.kmin": ["5KB", "50KB"], "host.cc.ai_rate": ["10Mbps", "40Mbps", "400Mbps"]}


class Here(Executor):
    """An executor that runs at once, and may be killed after a while."""

    def __init__(self, survives=1 << 30):
        self.ran, self.survives = [], survives

    def submit(self, function, point):
        future = Future()
        if len(self.ran) >= self.survives:
            raise KeyboardInterrupt
        self.ran.append(point.key)
        future.set_result(function(point))
        return future


@pytest.fixture
def quick(monkeypatch):
    """Points measured without a simulation."""

    def measure(point):
        number = float(point.values["host.cc.ai_rate"].removesuffix("Mbps")) + point.seed
        return dict.fromkeys(METRICS, number)

    monkeypatch.setattr(sweep, "measure", measure)


def grid(**changes):
    return Sweep("two-to-one", VARY, seeds=2, changes=SHORT | changes)


def test_a_grid_is_every_combination_with_every_seed(quick):
    points = grid().points()
    assert len(points) == len({p.key for p in points}) == 12
    assert {p.seed for p in points} == {1, 2}


def test_a_wrong_value_is_told_before_anything_runs():
    with pytest.raises(ScenarioError, match=r"switch\.ecn\.kmin"):
        Sweep("two-to-one", {"switch.ecn.kmin": ["5KB", "5KX"]}).points()
    with pytest.raises(ScenarioError, match="simulations; 100000 is the most"):
        Sweep("two-to-one", VARY, seeds=100_000).points()


@pytest.mark.parametrize("at_once", [1, 5])
def test_killed_and_started_again_it_repeats_nothing(quick, tmp_path, at_once):
    points, stamp = grid().points(), grid().stamp()
    first, again = Here(survives=5), Here()
    journal = Journal(tmp_path / "j", stamp)
    journal.open()
    with pytest.raises(KeyboardInterrupt):
        list(sweep.run(points, first, journal, at_once=at_once))
    journal.close(remove=False)
    kept = len(journal.found)
    with (tmp_path / "j").open("ab") as stream:
        stream.write(b'{"point": "half a li')
    journal = Journal(tmp_path / "j", stamp)
    journal.open()
    told = []
    outcomes = list(
        sweep.run(points, again, journal, lambda done, of: told.append((done, of)), at_once=at_once)
    )
    journal.close(remove=True)
    assert (kept > 0 or at_once > 5) == (len(again.ran) < 12)
    assert len(again.ran) == 12 - kept
    assert len(outcomes) == 12
    assert told[0] == (kept, 12)
    assert told[-1] == (12, 12)
    assert not (tmp_path / "j").exists()
    fresh = list(sweep.run(points, Here()))
    assert sorted(map(repr, outcomes)) == sorted(map(repr, fresh))


def test_a_journal_of_another_sweep_or_of_nothing_is_refused(quick, tmp_path):
    journal = Journal(tmp_path / "j", grid().stamp())
    journal.open()
    journal.close(remove=False)
    with pytest.raises(InputError, match="is the journal of another scenario"):
        Journal(tmp_path / "j", grid(duration="300us").stamp()).open()
    (tmp_path / "j").write_text("no journal\n")
    with pytest.raises(InputError, match="is no journal of a sweep"):
        Journal(tmp_path / "j", "x").open()


def test_rows_are_averages_and_stand_by_the_metric():
    nan = float("nan")
    outcomes = [
        Outcome({"k": k}, seed, dict.fromkeys(METRICS, value) | {"completion_ns": nan if k == "c" else value})
        for k, values in {"a": (1.0, 3.0), "b": (4.0, 4.0), "c": (9.0, 9.0)}.items()
        for seed, value in enumerate(values)
    ]
    best = sweep_table.rows(outcomes, "goodput_bps")
    assert [row.values["k"] for row in best] == ["c", "b", "a"]
    assert (best[2].mean["drops"], best[2].low["drops"], best[2].high["drops"], best[2].runs) == (2, 1, 3, 2)
    assert [row.values["k"] for row in sweep_table.rows(outcomes, "completion_ns")] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"goodput: no such metric \(did you mean 'goodput_bps'\?\)"):
        sweep_table.metric("goodput")


def test_a_point_measured_is_what_simulate_says():
    from roce_pkt.run.simulate import simulate

    point = grid().points()[0]
    result = simulate("two-to-one", {**SHORT, **point.values, "seed": "1"})
    found = sweep.measure(point)
    assert found["goodput_bps"] == result.summary["goodput_bps"] > 0
    assert found["queue_max_bytes"] == max(p.queue_max_bytes for p in result.ports)
    assert found.keys() == METRICS.keys()


def test_the_verb_writes_parquet_and_a_picture_and_sorts(tmp_path):
    import pyarrow.parquet as pq

    words = ["sweep", "--preset", "two-to-one", "--set", "duration=300us", "--set", "measure_from=0us"]
    words += [
        "--vary",
        "switch.ecn.kmin=5KB,50KB",
        "--vary",
        "host.cc.ai_rate=40Mbps,400Mbps",
        "--seeds",
        "2",
    ]
    words += ["-o", "r.parquet", "--png", "r.png", "--sort", "marked", "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "roce_pkt", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["marked"] for row in rows] == sorted(row["marked"] for row in rows)
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.num_rows == 8
    assert set(table.column_names) == {"switch.ecn.kmin", "host.cc.ai_rate", "seed", *METRICS}
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "r.parquet.journal").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--preset", "two-to-one"], "give what to vary"),
        (["--vary", "a=1"], "give a scenario file or --preset"),
        (["--preset", "two-to-one", "--vary", "kmin"], "is not KEY=A,B,C"),
        (["--preset", "two-to-one", "--vary", "seed=1,1"], "names a value twice"),
        (["--preset", "two-to-one", "--vary", "seed=1", "--sort", "speed"], "no such metric"),
        (["--preset", "two-to-one", "--vary", "seed=1,2", "--vary", "name=a", "--vary", "duration=1ms",
          "--png", "x.png"], "draws one or two varied keys, not 3"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(words, told, capsys, tmp_path, monkeypatch):
    from roce_pkt.cli.app import run

    monkeypatch.chdir(tmp_path)
    assert run(["sweep", *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
