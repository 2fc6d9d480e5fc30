# Reads what `artis-guest switch` prints in files KIND.NAME.ROUND: switch, number, mean, median,
# 99 %, maximum (ns), separated by tabs. Prints a row for each kind and scheduler.
function cell(list) { return sprintf("%.1f (%.1f to %.1f)", median(list), lowest(list), highest(list)) }
BEGIN { FS = "\t" }
FNR == 1 { file_parts(); kind = part[1]; who = part[2] }
$1 == "switch" {
    mean[kind, who] = mean[kind, who] " " $3 / 1000
    middle[kind, who] = middle[kind, who] " " $4 / 1000
    most[kind, who] = most[kind, who] " " $5 / 1000
}
END {
    n = split(turn, name, " ")
    m = split("nrt-alone nrt-load fifo-alone fifo-load", row, " ")
    printf "  %-11s %-9s %-24s %-24s %-24s\n", "", "", "mean", "median", "99 %"
    for (j = 1; j <= m; j++) for (i = 1; i <= n; i++) {
        s = row[j] SUBSEP name[i]
        if (mean[s]) printf "  %-11s %-9s %-24s %-24s %-24s\n", row[j], name[i], cell(mean[s]), cell(middle[s]), cell(most[s])
    }
    print ""
    for (j = 1; j <= m; j++) if (mean[row[j], "artis"] && mean[row[j], "default"])
        printf "  artis / default, %-10s mean %.2f, median %.2f, 99 %% %.2f\n", row[j], ratio(median(mean[row[j], "artis"]), median(mean[row[j], "default"])),
            ratio(median(middle[row[j], "artis"]), median(middle[row[j], "default"])), ratio(median(most[row[j], "artis"]), median(most[row[j], "default"]))
}
