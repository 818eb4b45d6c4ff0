"""Planners: pure functions from a snapshot of slots, lanes and traffic to a lane for every slot. Free of any engine.

    snapshot = ClusterSnapshot.of(load=[3, 1, 2], lane=[0, 0, 0], capacity=[10, 10])
    plan = Live(Hotspot()).plan(snapshot)

Every planner has a faithful core, its own `plan`, and is made fit for a running stream by `Live`, which judges plans by
the planner's `objective`. A planner of your own is any object with such a method;
`trimtab.planners.checks.yield_checks` tells whether it holds what is expected of it.
"""

from trimtab.planners.albic import Albic
from trimtab.planners.auto import Auto
from trimtab.planners.bootstrap import Bootstrap
from trimtab.planners.cola import Cola
from trimtab.planners.even import Even
from trimtab.planners.flux import Flux
from trimtab.planners.hash import Hash
from trimtab.planners.hotspot import Hotspot
from trimtab.planners.live import Live
from trimtab.planners.milp import Milp
from trimtab.planners.naive import Naive
from trimtab.planners.objective import Collocate
from trimtab.planners.optimal import Optimal
from trimtab.planners.plan import Answer, Infeasible, Plan, Planner, SlotMove
from trimtab.planners.potc import Potc
from trimtab.planners.problem import read_problem
from trimtab.planners.reassign import Reassign
from trimtab.planners.rebalance import Rebalance
from trimtab.planners.scaler import NoScaling, ScaleDecision, Scaler, TargetUtilisation
from trimtab.planners.snapshot import ClusterSnapshot, Limits, Traffic, combine
from trimtab.planners.splitter import Splitter
from trimtab.planners.tasklevel import TaskLevel
from trimtab.planners.topdown import TopDown, refine_granularity

PLANNERS: dict[str, type[Planner]] = {
    "milp": Milp,
    "albic": Albic,
    "flux": Flux,
    "potc": Potc,
    "cola": Cola,
    "topdown": TopDown,
    "tasklevel": TaskLevel,
    "naive": Naive,
    "even": Even,
    "hash": Hash,
    "optimal": Optimal,
    "bootstrap": Bootstrap,
    "rebalance": Rebalance,
    "reassign": Reassign,
    "hotspot": Hotspot,
    "auto": Auto,
}
"""All of them by the name that the command line knows them under."""

__all__ = [
    "PLANNERS",
    "Albic",
    "Answer",
    "Auto",
    "Bootstrap",
    "ClusterSnapshot",
    "Cola",
    "Collocate",
    "Even",
    "Flux",
    "Hash",
    "Hotspot",
    "Infeasible",
    "Limits",
    "Live",
    "Milp",
    "Naive",
    "NoScaling",
    "Optimal",
    "Plan",
    "Planner",
    "Potc",
    "Reassign",
    "Rebalance",
    "ScaleDecision",
    "Scaler",
    "SlotMove",
    "Splitter",
    "TargetUtilisation",
    "TaskLevel",
    "TopDown",
    "Traffic",
    "combine",
    "read_problem",
    "refine_granularity",
]
