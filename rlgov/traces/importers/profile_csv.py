"""A profile as a trace: each measured setting is one window, without a time."""

from __future__ import annotations

from rlgov.errors import TraceError
from rlgov.traces.importers.base import Clock, Imported, Importer, ImportReport, lines_of
from rlgov.traces.importers.registry import register
from rlgov.traces.profile import ProfileRow
from rlgov.traces.profiles import is_profile_header, parse_profiles
from rlgov.traces.row import Plain, TraceRow
from rlgov.traces.text import parse_table


@register
class ProfileCsv(Importer):
    """Profiles of ours and tables of other people's that hold a setting a row."""

    name = "profile_csv"

    def accepts(self, head: str) -> bool:
        """See `Importer.accepts`."""
        first = next((line for line in lines_of(head) if line.strip()), "")
        try:
            return is_profile_header(parse_table(first).header)
        except TraceError:
            return False

    def read(self, text: str, clock: Clock) -> Imported:
        """See `Importer.read`.

        A profile is small and made with care: one bad cell is an error with its line, since a
        setting that is quietly missing would change what is learnt from the rest.
        """
        del clock  # a profile has no time
        profiles = parse_profiles(text)
        rows = [_window(row, i) for i, row in enumerate(r for p in profiles for r in p.rows)]
        report = ImportReport(importer=self.name, lines=len(lines_of(text)), rows=len(rows))
        report.n_ok = len(rows)
        report.blank = report.lines - len(rows)
        scopes = {row.energy_scope for profile in profiles for row in profile.rows}
        report.total_rule = (scopes.pop() if len(scopes) == 1 else "") or "as stated"
        report.warnings += profiles[0].warnings
        return Imported(rows, report)


def _window(row: ProfileRow, index: int) -> TraceRow:
    settings = {"gpu_mhz_set": row.gpu_mhz, "cpu_mhz_set": row.cpu_mhz, "emc_mhz_set": row.emc_mhz}
    figures: dict[str, Plain] = {
        "device": row.device or None,
        "job": row.job or None,
        "window": index,
        "steps": row.steps,
        "step_time_s": row.step_time_s,
        **settings,
        "total_w": row.power_w,
        "total_rule": row.energy_scope or None,
        "energy_per_step_j": row.energy_per_step_j,
        "note": row.note or None,
    }
    extra: dict[str, Plain] = {"config": row.config, "power_limit_w": row.power_limit_w}
    return TraceRow(
        kind="window",
        t_s=None,
        values={name: value for name, value in figures.items() if value is not None},
        rails=row.rails,
        extra={name: value for name, value in extra.items() if value is not None},
    )
