"""All rules about the faults of a log, in the order in which they decide."""

from __future__ import annotations

from analyzer.incident.asked_to_stop import asked_to_stop
from analyzer.incident.cut_names import cut_names, cut_text
from analyzer.incident.driver_log import driver_log_alone, driver_messages, failed_hardware
from analyzer.incident.earlier_runs import earlier_runs
from analyzer.incident.exit_noise import exit_noise
from analyzer.incident.first_process import first_process
from analyzer.incident.fold import fold_repeats
from analyzer.incident.host_kills import killed_program, other_kills
from analyzer.incident.incident import Rule, rule
from analyzer.incident.printed_values import interrupted_launch, printed_values, read_back
from analyzer.incident.processes import name_processes
from analyzer.incident.several_kernels import several_kernels
from analyzer.incident.survived import survived, survived_beside
from analyzer.incident.times_above import times_above
from analyzer.incident.tool_reports import advice, confirmed_reports
from analyzer.incident.trust import TRUST_OF_REPORTS
from analyzer.incident.within_process import within_process

RECORDS: tuple[Rule, ...] = (
    rule(fold_repeats),
    rule(confirmed_reports),
    rule(name_processes),
    rule(cut_names),
    rule(printed_values),
    rule(times_above),
)
# What has no part in the failure is set aside first: nothing is compared with it any more.
ASIDE: tuple[Rule, ...] = (
    rule(survived_beside),
    rule(exit_noise),
    rule(earlier_runs),
)
ROLES: tuple[Rule, ...] = (
    rule(advice),
    rule(within_process),
    rule(first_process),
    rule(killed_program),
    rule(failed_hardware),
    rule(driver_log_alone),
    rule(driver_messages),
    rule(other_kills),
)
# Last, whether the root ended the program at all.
HARMLESS: tuple[Rule, ...] = (
    rule(survived),
    rule(asked_to_stop),
)
# A report is believed as the first rule says that knows its form; what the log around it tells counts more.
TRUST: tuple[Rule, ...] = (
    *TRUST_OF_REPORTS,
    rule(several_kernels),
    rule(read_back),
    rule(interrupted_launch),
    rule(cut_text),
)
RULES: tuple[Rule, ...] = (*RECORDS, *ASIDE, *ROLES, *HARMLESS, *TRUST)
