"""The tables of test/bench/alternatives: medians of rounds, one table for each load."""

import statistics

HEADER = ["", "cycles/s", "lock p50 us", "lock p99 us", "client CPU us/cycle", "failed cycles"]
FIGURES = (("acquire_p50_us", 0), ("acquire_p99_us", 0), ("cpu_us_per_cycle", 1))


def parse(line):
    """The figures of a line of KEY=NUMBER pairs."""
    return {key: float(value) for key, value in (pair.split("=", 1) for pair in line.split())}


def thousands(value, digits):
    """A number with a space between thousands, as docs/performance.md writes them."""
    return f"{value:,.{digits}f}".replace(",", " ")


def rate(value):
    """Cycles a second; a few of them with a fraction."""
    return thousands(value, 0 if value >= 10 else 1)


def row(name, rounds):
    """The cells of one alternative.  A round is figures; None: the program failed, or did not end."""
    good = [figures for figures in rounds if figures and figures["cycles_per_s"] > 0]
    errors = sum(int(figures.get("errors", 0)) for figures in rounds if figures)
    lost = sum(figures is None for figures in rounds)
    failed = thousands(errors, 0) + (f", {lost} of {len(rounds)} rounds" if lost else "")
    if 2 * len(good) <= len(rounds):  # The median round has no cycle.
        return [name, "none", "-", "-", "-", failed]
    def median(key):
        return statistics.median(figures[key] for figures in good)
    return [name, rate(median("cycles_per_s")), *(thousands(median(key), digits) for key, digits in FIGURES),
            failed]


def rows(results):
    """The rows of {name: rounds}, without those that were not measured, the most cycles first."""
    def cycles(name):
        return statistics.median(figures["cycles_per_s"] if figures else 0 for figures in results[name])
    measured = {name: rounds for name, rounds in results.items() if rounds}
    return [row(name, measured[name]) for name in sorted(measured, key=lambda name: -cycles(name))]


def render(header, cells):
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(one) + " |" for one in cells]) + "\n"
