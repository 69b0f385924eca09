"""DCQCN's parameters: our names, units, ranges, the paper's values, and everybody else's names.

Foreign names, in this order where they exist: the paper's symbol; Linux `ecn/roce_rp` sysfs files;
upstream debugfs `cc_params`; WinOF-2 registry keys; the traffic generators' OTG model. mlxconfig's
names are the sysfs ones in capitals. Each group carries the unit its bare numbers have there.
"""

from __future__ import annotations

from typing import Final

from roce_pkt.cc.parameters import OFF_ON, Alias, Parameter, ParameterTable
from roce_pkt.units import PS_PER_NS, PS_PER_S

ARTEFACTS: Final = "SIGCOMM'15 final set, as several independent artefacts agree; paper text not at hand"
PSEUDO_CODE: Final = "SIGCOMM'15 behaviour as published simulators agree on it; paper text not at hand"
SHORTEST_PS: Final = PS_PER_NS
LONGEST_PS: Final = 5000 * PS_PER_S

CUT_FIRST, ALPHA_FIRST = 0, 1
RESTART, FREE = 0, 1
EACH_CNP, POLLED = 0, 1
F_STEPS, ONE_STEP_FEWER = 0, 1
BOTH_COUNTERS, AFTER_ONE_STEP = 0, 1

PARAMETERS = ParameterTable(
    Parameter(
        "alpha0", "ratio", "1", "Alpha before a flow's first notification.", ARTEFACTS,
        high=1,
        aliases=(Alias("1/1024", (
            "initial_alpha_value", "rp_initial_alpha_value", "DcQcnInitialAlphaValue", "initial_alpha",
        )),),
    ),
    Parameter(
        "g", "ratio", "1/256", "Weight of a new sample in alpha's average.", ARTEFACTS,
        high=1,
        aliases=(Alias("1024ths kept", ("dce_tcp_g", "rp_dce_tcp_g", "DcQcnDceAlphaG", "alpha_g")),),
    ),
    Parameter(
        "alpha_period", "ps", "55us", "How often alpha decays; longer than the notification interval.",
        ARTEFACTS,
        low=SHORTEST_PS, high=LONGEST_PS,
        aliases=(
            Alias("us", (
                "K", "dce_tcp_rtt", "rp_dce_tcp_rtt", "DcQcnDceAlphaUpdatePeriod", "alpha_update_period",
            )),
        ),
    ),
    Parameter(
        "alpha_timer", "switch", "restart",
        "Whether a notification raises alpha at once and restarts its period, or the period runs free.",
        PSEUDO_CODE,
        choices=("restart", "free"),
    ),
    Parameter(
        "alpha_order", "switch", "cut-first",
        "Whether a notification cuts with the old alpha or the raised one (with alpha_timer = restart).",
        PSEUDO_CODE,
        choices=("cut-first", "alpha-first"),
    ),
    Parameter(
        "cut_trigger", "switch", "each-cnp",
        "Whether each notification cuts at once, or a flag is polled every cut_period.", PSEUDO_CODE,
        choices=("each-cnp", "polled"),
    ),
    Parameter(
        "cut_period", "ps", "50us", "Polling period of the cut flag (with cut_trigger = polled).",
        "the notification interval; without effect in the paper's own law",
        low=SHORTEST_PS, high=LONGEST_PS,
        aliases=(Alias("us", (
            "rate_reduce_monitor_period", "rp_rate_reduce_monitor_period", "DcQcnRateReduceMonitorPeriod",
            "rate_reduction_time_period",
        )),),
    ),
    Parameter(
        "cut_gain", "ratio", "1/2", "Part of alpha by which a cut lowers the rate.", PSEUDO_CODE,
        high=1,
        aliases=(Alias("log2 of 1024ths", (
            "rpg_gd", "rp_gd", "DcQcnAlphaToRateShift", "rate_decrement_coefficient",
        )),),
    ),
    Parameter(
        "min_dec_fac", "ratio", "0", "Part of the old rate that a single cut always leaves.",
        "not in the paper's law: 0 is no limit",
        high=1,
        aliases=(Alias("%", ("rpg_min_dec_fac", "rp_min_dec_fac", "DcQcnMinDecFac")),),
    ),
    Parameter(
        "min_rate", "bps", "1Mbps", "Floor of the rate.",
        "NVIDIA default of rpg_min_rate; the paper's table names none, ns-3 set-ups use 100Mbps to 1Gbps",
        low=1e-9,
        aliases=(
            Alias("Mb/s", ("rpg_min_rate", "rp_min_rate", "DcQcnMinRate")),
            Alias("% of line", ("minimum_rate_limmit", "minimum_rate_limit")),
        ),
    ),
    Parameter(
        "max_rate", "bps", "0", "Ceiling of the rate; 0 is the line rate.", "not in the paper's law",
        aliases=(Alias("Mb/s", ("rpg_max_rate", "rp_max_rate")),),
    ),
    Parameter(
        "rate_on_first_cnp", "bps", "0", "Rate that a flow's first notification loads; 0 leaves it.",
        "not in the paper's law",
        aliases=(
            Alias("Mb/s", (
                "rate_to_set_on_first_cnp", "rp_rate_to_set_on_first_cnp", "DcQcnRateToSetOnFirstCnp",
            )),
            Alias("% of line", ("initial_rate_after_first_cnp",)),
        ),
    ),
    Parameter(
        "clamp_target", "switch", "on", "Every cut sets the target rate to the rate before it.", PSEUDO_CODE,
        choices=OFF_ON,
        aliases=(Alias("", (
            "clamp_tgt_rate", "rp_clamp_tgt_rate", "DcQcnClampTgtRate", "clamp_target_rate",
        )),),
    ),
    Parameter(
        "clamp_after_timer", "switch", "on",
        "With clamp_target off: a cut also sets the target if the timer raised the rate last.",
        "without effect in the paper's own law",
        choices=OFF_ON,
        aliases=(Alias("", (
            "clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati", "DcQcnClampTgtRateAfterTimeInc",
        )),),
    ),
    Parameter(
        "cap_target", "switch", "on", "The target rate never exceeds the line rate.",
        "implementation choice; ns3-rdma and htsim let it exceed",
        choices=OFF_ON,
    ),
    Parameter(
        "increase_period", "ps", "55us", "Recovery timer.", ARTEFACTS,
        low=SHORTEST_PS, high=LONGEST_PS,
        aliases=(
            Alias("us", (
                "T", "T_inc", "rpg_time_reset", "rp_time_reset", "DcQcnTimeReset", "rate_increment_time",
                "dcqcn_T",
            )),
        ),
    ),
    Parameter(
        "byte_counter", "switch", "on", "Whether sent octets also drive recovery.", PSEUDO_CODE,
        choices=OFF_ON,
    ),
    Parameter(
        "byte_reset", "bytes", "10MB", "Octets for one recovery step of the byte counter.", ARTEFACTS,
        low=1,
        aliases=(
            Alias("", ("B", "dcqcn_B")),
            # the unit of this file is not public in words; a simulator that cites NVIDIA multiplies by 64
            Alias("64 B", (
                "rpg_byte_reset", "rp_byte_reset", "DcQcnByteReset", "rate_increment_byte_counter",
            )),
        ),
    ),
    Parameter(
        "threshold", "count", "5", "F: recovery steps before the target rate itself rises.", ARTEFACTS,
        low=1, high=31,
        aliases=(Alias("", (
            "F", "rpg_threshold", "rp_threshold", "DcQcnThreshold", "rate_increment_threshold", "dcqcn_F",
        )),),
    ),
    Parameter(
        "fast_recovery", "switch", "f-steps",
        "Whether fast recovery lasts F steps (max(T, BC) <= F) or one fewer (max(T, BC) < F).",
        "the paper's prose says F steps, its figure max(T, BC) < F",
        choices=("f-steps", "one-step-fewer"),
    ),
    Parameter(
        "hyper_increase", "switch", "both-counters",
        "Whether hyper increase needs T and BC past F and grows, or follows one additive step and is flat.",
        PSEUDO_CODE,
        choices=("both-counters", "after-one-step"),
    ),
    Parameter(
        "extra_fast_recovery", "switch", "off",
        "At the first step after a cut, a target above ten times the rate is divided by eight.",
        "QCN's, kept by ns3-rdma; not in the paper's law",
        choices=OFF_ON,
    ),
    Parameter(
        "hyper_halves_periods", "switch", "off",
        "During hyper increase the timer and the byte counter run twice as fast.",
        "ns3-rdma; not in the paper's law",
        choices=OFF_ON,
    ),
    Parameter(
        "ai_rate", "bps", "40Mbps", "Additive increase of the target rate.", ARTEFACTS,
        aliases=(
            Alias("Mb/s", ("R_AI", "rpg_ai_rate", "rp_ai_rate", "DcQcnAiRate")),
            Alias("% of line", ("additive_increment_rate",)),
        ),
    ),
    Parameter(
        "hai_rate", "bps", "200Mbps", "Hyper increase of the target rate.",
        "ns3-rdma sample set-up; not in the paper's table",
        aliases=(
            Alias("Mb/s", ("R_HAI", "rpg_hai_rate", "rp_hai_rate", "DcQcnHaiRate")),
            Alias("% of line", ("hyper_increment_rate",)),
        ),
    ),
)  # fmt: skip
