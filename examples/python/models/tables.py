"""Tables that compare the rates of two campaigns."""

import pandas
from network import Network

import flipwave


def rates(campaign: flipwave.Campaign, by: str) -> pandas.DataFrame:
    """Number of faults, and rates of SDC and critical SDC in percent, grouped by a column."""
    table = campaign.rates(by, causes=True)
    whole = table[table["cause"].isna()]
    sdc = whole[whole["outcome"] == "sdc"].set_index("value")
    critical = table[(table["outcome"] == "sdc") & (table["cause"] == "critical")].set_index("value")
    return pandas.DataFrame(
        {"faults": sdc["total"], "sdc": 100 * sdc["rate"], "critical": 100 * critical["rate"]}
    ).fillna({"critical": 0.0})


def markdown(table: pandas.DataFrame, first: str) -> list[str]:
    lines = ["| " + " | ".join([first, *table.columns]) + " |", "|---" * (1 + len(table.columns)) + "|"]
    for name, row in table.iterrows():
        cells = (_cell(column, value) for column, value in row.items())
        lines.append("| " + " | ".join([f"{name}", *cells]) + " |")
    return [*lines, ""]


def _cell(column: str, value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if column.startswith("faults") else f"{value:.2f}"


def side_by_side(plain: flipwave.Campaign, restricted: flipwave.Campaign, by: str) -> pandas.DataFrame:
    """Rates of both campaigns next to each other, for groups in both."""
    names = {"faults": "faults", "sdc": "SDC, %", "critical": "critical, %"}
    left, right = (rates(campaign, by).rename(columns=names) for campaign in (plain, restricted))
    return left.join(right, rsuffix=", restricted", how="inner")


def text(network: Network, accuracy: float, plain: flipwave.Campaign, restricted: flipwave.Campaign) -> str:
    """All tables of one model."""
    operations = side_by_side(plain, restricted, "opcode").sort_values("faults", ascending=False).head(12)
    bits = side_by_side(plain, restricted, "bit").sort_index(key=lambda names: names.astype(int))
    lines = [
        f"## {network.name}",
        "",
        f"{len(network.steps)} kernels; right in {100 * accuracy:.1f} % of cases that it was not fitted to.",
        "",
        *markdown(compared(plain, restricted), "outcome"),
        *markdown(by_layer(network, plain, restricted), "layer"),
        *markdown(operations, "operation"),
        *markdown(bits, "bit"),
    ]
    return "\n".join(lines)


def by_layer(network: Network, plain: flipwave.Campaign, restricted: flipwave.Campaign) -> pandas.DataFrame:
    """Rates by layer, in the order of the model, without layers that have no faults."""
    table = side_by_side(plain, restricted, "label")
    return table.loc[[step.label for step in network.steps if step.label in table.index]]


def compared(plain: flipwave.Campaign, restricted: flipwave.Campaign) -> pandas.DataFrame:
    """Rates of outcomes in percent, differences in percentage points, and the cost of the restriction."""
    table = flipwave.compare(plain, restricted)
    table = table[(table["scope"] == "all") & (table["outcome"] != "detected")].set_index("outcome")
    cost = table["instructions_b"].iloc[0] / table["instructions_a"].iloc[0]
    interval = [
        f"{100 * low:+.2f} to {100 * high:+.2f}"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]
    return pandas.DataFrame(
        {
            "plain, %": 100 * table["rate_a"],
            f"restricted, %, for {cost:.2f} times the instructions": 100 * table["rate_b"],
            "difference, 95 %": interval,
            "p": [f"{p:.2g}" for p in table["p"]],
        }
    )
