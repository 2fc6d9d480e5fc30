# Reads lines "NAME SECONDS DAEMON_PCT", two for each turn: hackbench's time, and the share of one
# CPU that the daemon took meanwhile, in percent.
{ time[$1] = time[$1] " " $2; daemon[$1] = daemon[$1] " " $3 }
END {
    print "                hackbench, median (lowest to highest)   / artis    daemon, % of a CPU"
    m = split(turn, name, " ")
    for (i = 1; i <= m; i++) {
        s = name[i]
        printf "  %-12s  %.4f (%.4f to %.4f)               %.3f      %.2f\n", s, median(time[s]),
            lowest(time[s]), highest(time[s]), ratio(median(time[s]), median(time["artis"])), median(daemon[s])
    }
    if (time["before"]) {
        r = ratio(median(time["artis"]), median(time["before"]))
        printf "\nbar: artis / before %.3f, to be at most 1.01: %s\n", r, verdict(r <= 1.01)
    }
    if (!time["artis"]) exit
    for (i = 1; i <= m; i++) {
        s = name[i]
        if (s != "record" && s != "top") continue
        r = ratio(median(time[s]), median(time["artis"]))
        printf "bar: %s / artis %.3f, to be at most %.2f: %s\n", s, r, bar, verdict(r <= bar)
        printf "bar: the daemon with %s %.2f %%, to be at most %d %%: %s\n", s, median(daemon[s]), daemon_bar,
            verdict(median(daemon[s]) <= daemon_bar)
    }
}
