# Reads what `artis-guest moves` leaves in files KIND.NAME.ROUND: tab-separated name, times,
# sum, median, 99 %, maximum (ns). Prints a row for each of -v rows=NAMES and scheduler:
# medians over the rounds, and their ratio to the last scheduler's.
function row_name(r) {
    if (r == "rt_side") return "entry to switch"
    if (r == "put") return "of that, queueing it"
    if (r == "kick") return "interrupt of a kick"
    if (r == "to_idle") return "runs on an idle CPU"
    return "on a busy CPU"
}
BEGIN { FS = "\t"; if (!unit) unit = 1 }
FNR == 1 { file_parts(); who = part[2] }
$1 == "rt_side" { evictions[who] += $2 }
$1 == "secs" { secs[who] += $2 }
NF == 6 && $2 {
    times[who, $1] += $2
    mean[who, $1] = mean[who, $1] " " $3 / $2 / unit
    middle[who, $1] = middle[who, $1] " " $4 / unit
    most[who, $1] = most[who, $1] " " $5 / unit
}
END {
    n = split(turn, name, " ")
    m = split(rows, row, " ")
    printf "  %-20s  %-8s %9s %10s %24s %10s %12s\n", "", "", "an evict.", "median", "(lowest to highest)", "99 %", "mean"
    for (j = 1; j <= m; j++) for (i = 1; i <= n; i++) {
        s = name[i] SUBSEP row[j]
        if (!times[s]) { printf "  %-20s  %-8s  (none)\n", row_name(row[j]), name[i]; continue }
        printf "  %-20s  %-8s %9.2f %10.1f %24s %10.1f %12.1f\n", row_name(row[j]), name[i], times[s] / (evictions[name[i]] ? evictions[name[i]] : 1),
            median(middle[s]), sprintf("(%.1f to %.1f)", lowest(middle[s]), highest(middle[s])), median(most[s]), median(mean[s])
    }
    for (j = 1; j <= m; j++) if (n > 1 && times[name[1], row[j]] && times[name[2], row[j]])
        printf "  %s / %s, %s: median %.3f, mean %.3f\n", name[1], name[2], row_name(row[j]), ratio(median(middle[name[1], row[j]]), median(middle[name[2], row[j]])),
            ratio(median(mean[name[1], row[j]]), median(mean[name[2], row[j]]))
    for (i = 1; i <= n; i++) printf "  %-8s %.1f evictions a second\n", name[i], ratio(evictions[name[i]], secs[name[i]])
    print ""
}
