"""Which kind of made result says a sentence with the seeds that are tried: each sentence has one."""

from __future__ import annotations

from collections.abc import Mapping

SAID_BY: Mapping[str, frozenset[str]] = {
    "io": frozenset(
        (
            "cells_not_valid",
            "estimate_off",
            "few_blocks",
            "figures_changed",
            "job_beside_others",
            "more_blocks_tell",
            "on_a_lab",
            "rate_searched",
            "rates_under_bound",
            "ratios_changed",
            "reads_from_caches",
            "run_not_ended",
            "scatter_unlike",
            "target_alone",
            "targets_compared",
            "trace_replayed",
            "trials_under_fault",
            "way_not_measured",
            "way_to_take",
            "way_without_figure",
            "ways_emulated",
            "writes_amplified",
            "writes_kept_back",
        )
    ),
    "required": frozenset(
        (
            "requirement_met",
            "requirement_not_met",
            "requirement_undecided",
            "requirement_unmeasured",
            "requirements_judged",
        )
    ),
    "proved": frozenset(("proof_mechanism", "proof_side_effects", "proof_verdict")),
    "searched": frozenset(("search_against", "search_course", "search_proved")),
    "several_proved": frozenset(
        ("proof_design", "proof_interaction", "proof_mechanism", "proof_side_effects", "proof_verdict")
    ),
    "scaled": frozenset(("per_device_withheld", "scaling_of_threads")),
    "unclean": frozenset(("cluster_clean_again", "cluster_unclean_as_asked")),
    "hosts": frozenset(("host_slower",)),
    "many_slow_hosts": frozenset(("hosts_slower_more",)),
    "coherence": frozenset(
        (
            "pair_not_asked",
            "pair_relies_on",
        )
    ),
    "copies": frozenset(
        (
            "copies_bound",
            "copies_did_not_do_the_same",
            "copies_growth",
            "copies_model",
            "copies_took",
            "copies_trace_gaps",
            "copies_untraced",
            "cpus_of_others",
            "cpus_saturated",
            "io_and_run_time",
            "processes_left",
        )
    ),
    "pipeline": frozenset(
        (
            "digests_differ",
            "picture_enlarged",
            "pipeline_failed",
            "skewed_blocks",
            "stage_copies",
            "stages_add_up",
            "stages_bound",
            "stages_compared",
            "stages_do_not_add_up",
            "stages_read_again",
        )
    ),
    "trace": frozenset(
        (
            "rule_failed_lookups",
            "rule_imbalance_copies",
            "rule_imbalance_processes",
            "rule_misaligned",
            "rule_mostly_metadata",
            "rule_random_reads",
            "rule_random_writes",
            "rule_read_ahead_defeated",
            "rule_repeated_opens",
            "rule_repeated_stats",
            "rule_reread",
            "rule_rewritten",
            "rule_small_reads",
            "rule_small_writes",
            "rule_sync_bound",
            "trace_blind",
            "trace_empty",
            "trace_ended",
            "trace_lost",
            "trace_more_findings",
            "trace_overlapped",
            "trace_remainder",
            "trace_slowest",
            "trace_time",
            "trace_times",
            "trace_unseen",
            "trace_warning",
        )
    ),
    "transfers": frozenset(
        (
            "transfer_acks_late",
            "transfer_acks_lost",
            "transfer_bursts",
            "transfer_ended_together",
            "transfer_stalls",
        )
    ),
    "sweep": frozenset(
        (
            "sweep_knee",
            "sweep_made_of",
            "sweep_no_plateau",
            "sweep_tried",
        )
    ),
    "sweeps": frozenset(
        (
            "sweep_knee",
            "sweep_made_of",
            "sweep_tried",
        )
    ),
    "gaps": frozenset(
        (
            "trace_last_seen",
            "trace_mapped",
        )
    ),
    "environment": frozenset(
        (
            "rule_library_cost",
            "rule_many_small_files",
            "rule_mostly_reads",
            "rule_mostly_writes",
        )
    ),
    "waits": frozenset(
        (
            "rule_bound_by_compute",
            "rule_end_probes",
            "rule_serial_reads",
            "rule_unseen_calls",
            "rule_waiting_asleep",
            "rule_waiting_for_cpus",
            "rule_waiting_for_locks",
            "rule_waiting_for_others",
            "rule_waiting_for_pages",
        )
    ),
    "workflows": frozenset(
        (
            "operations_lack_times",
            "operations_not_done",
            "workflows_changed",
            "workflows_do_not_add_up",
            "workflows_empty",
            "workflows_on_one_side",
            "workflows_queued",
            "workflows_sizes_unknown",
            "workflows_time",
            "workflows_unfinished",
        )
    ),
    "document": frozenset(
        (
            "document_checked",
            "document_doubt",
            "document_not_measured",
        )
    ),
}
