# Reads the files cyclictest.NAME.ROUND (a histogram with leading zeros), stress.NAME.ROUND
# (stress-ng's metrics) and hackbench.NAME.ROUND (a line for each run of it).
function end_of_file() {
    if (kind == "cyclictest" && !total) print "  (" tag ": no histogram)"
    if (kind == "cyclictest" && total) {
        for (i = 1; i <= columns; i++)
            lat[who, column[i]] = lat[who, column[i]] " " quantile(share[i])
    }
    if (kind == "hackbench") done[who, kind] = done[who, kind] " " lines
    lines = 0
    forget_histogram()
}
function cell(who, what) { return sprintf("%d (%d to %d)", median(lat[who, what]), lowest(lat[who, what]), highest(lat[who, what])) }
# -1: nothing to compare with
function share_of(of, who, what,    s) { s = median(done[of, what]); return s ? median(done[who, what]) / s : -1 }
function bar(text, r, limit, above) {
    printf "bar: %-28s %s, to be at %s %.2f: %s\n", text, r < 0 ? "-" : sprintf("%.2f", r), above ? "least" : "most", limit,
        r < 0 ? "not measured" : verdict(above ? r >= limit : r <= limit)
}
BEGIN {
    columns = split("p50 p99 p99.9 max", column, " ")
    split("0.5 0.99 0.999 1", share, " ")
    stressors = split("cpu udp sock fork vm sysinfo hackbench", stressor, " ")
    for (i = 1; i < stressors; i++) known[stressor[i]] = 1
}
FNR == 1 {
    end_of_file()
    file_parts()
    kind = part[1]
    who = part[2]
}
kind == "cyclictest" { read_histogram() }
# name, operations, real seconds; before them "stress-ng: info: [PID]", in some versions "metrc:"
kind == "stress" { for (i = 2; i < NF - 1; i++) if ($i in known && $(i - 1) ~ /\]$/ && $(i + 2) > 0) done[who, $i] = done[who, $i] " " $(i + 1) / $(i + 2) }
kind == "hackbench" { lines++ }
END {
    end_of_file()
    n = split(turn, name, " ")
    printf "  %-10s", ""
    for (j = 1; j <= columns; j++) printf "  %-24s", column[j]
    print ""
    for (i = 1; i <= n; i++) {
        printf "  %-10s", name[i]
        for (j = 1; j <= columns; j++) printf "  %-24s", cell(name[i], column[j])
        print ""
    }
    of = done["shared", "cpu"] ? "shared" : "shield"
    print "\nwork done, share of " of " (bogo operations per second, runs of hackbench)"
    printf "  %-10s", ""
    for (j = 1; j <= stressors; j++) printf " %9s", stressor[j]
    print ""
    for (i = 1; i <= n; i++) {
        printf "  %-10s", name[i]
        for (j = 1; j <= stressors; j++) { r = share_of(of, name[i], stressor[j]); printf " %9s", r < 0 ? "-" : sprintf("%.2f", r) }
        print ""
    }
    print ""
    if (!lat["artis", "p50"]) exit
    for (i = 1; i <= n; i++) {
        if (name[i] == "artis") continue
        for (j = 1; j <= 2; j++)
            figure(column[j] "_by_" name[i], ratios(lat["artis", column[j]], lat[name[i], column[j]]), 2, "×", wakeups " wake-ups")
    }
    if (done["shield", "cpu"])
        for (j = 2; j <= stressors; j++)
            figure(stressor[j] "_by_shield", ratios(done["artis", stressor[j]], done["shield", stressor[j]]), 2, "×", (wakeups / 500 + 3) " s")
    print ""
    for (j = 1; j <= 2; j++)
        if (lat["shield", column[j]])
            bar(column[j] " artis / shield", ratio(median(lat["artis", column[j]]), median(lat["shield", column[j]])), 1.05, 0)
    for (j = 1; j <= 2; j++)
        if (lat["busy", column[j]])
            bar(column[j] " artis / busy", ratio(median(lat["artis", column[j]]), median(lat["busy", column[j]])), 1.05, 0)
    if (done["shield", "cpu"])
        for (j = 2; j <= stressors; j++) bar(stressor[j] " artis / shield", share_of("shield", "artis", stressor[j]), 1, 1)
    if (!done["shared", "cpu"]) exit
    bar("computing artis / shared", share_of("shared", "artis", "cpu"), 1, 1)
    for (j = 2; j <= stressors; j++) bar(stressor[j] " artis / shared", share_of("shared", "artis", stressor[j]), 0.45, 1)
}
