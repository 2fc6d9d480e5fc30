# Reads lines "NAME SECONDS DAEMON_PCT VIEWER_PCT", two for each turn: hackbench's time, and what
# the daemon and the viewer took meanwhile, in percent of one CPU.
{ time[$1] = time[$1] " " $2; daemon[$1] = daemon[$1] " " $3; viewer[$1] = viewer[$1] " " $4 }
END {
    print "                hackbench, median (lowest to highest)   / artis    daemon    viewer, % of a CPU"
    m = split(turn, name, " ")
    for (i = 1; i <= m; i++) {
        s = name[i]
        printf "  %-12s  %.4f (%.4f to %.4f)               %.3f      %5.2f     %5.2f\n", s, median(time[s]),
            lowest(time[s]), highest(time[s]), ratio(median(time[s]), median(time["artis"])), median(daemon[s]),
            median(viewer[s])
    }
    print ""
    if (time["before"]) {
        r = ratio(median(time["artis"]), median(time["before"]))
        printf "bar: artis / before %.3f, to be at most 1.01: %s\n", r, verdict(r <= 1.01)
    }
    if (!time["artis"] || !time["top"]) exit
    r = ratio(median(time["top"]), median(time["artis"]))
    printf "bar: top / artis %.3f, to be at most %.2f: %s\n", r, bar, verdict(r <= bar)
    printf "bar: the daemon with top %.2f %%, to be at most %d %%: %s\n", median(daemon["top"]), daemon_bar,
        verdict(median(daemon["top"]) <= daemon_bar)
}
