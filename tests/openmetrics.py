# SPDX-License-Identifier: GPL-2.0-only
"""Reads OpenMetrics on stdin with Prometheus's own parser, which refuses what is
not of the format, and writes it as JSON: a list of families.

For tests/metrics.rs; Debian's package python3-prometheus-client has the parser.
"""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

json.dump(
    [
        {
            "name": family.name,
            "help": family.documentation,
            "type": family.type,
            "unit": family.unit,
            "samples": [
                {"name": sample.name, "labels": sample.labels, "value": sample.value}
                for sample in family.samples
            ],
        }
        for family in text_string_to_metric_families(sys.stdin.read())
    ],
    sys.stdout,
)
