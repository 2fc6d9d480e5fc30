# Reads lines "NAME SECONDS SHARE": time of all tasks, how busy the RT CPUs were in percent.
{ secs[$1] = secs[$1] " " $2; busy[$1] = busy[$1] " " $3; runs = runs sprintf("  %s %.2f", $1, $2) }
END {
    print " each run, s:" runs
    n = split(turn, name, " ")
    for (i = 1; i <= n; i++) {
        s = name[i]
        printf "  %-10s  %.2f s (%.2f to %.2f)  %.3f of default  RT CPUs busy %.0f %%\n", s, median(secs[s]), lowest(secs[s]),
            highest(secs[s]), ratio(median(secs[s]), median(secs["default"])), median(busy[s])
    }
    if (!secs["artis"] || !secs["default"]) exit
    r = ratio(median(secs["artis"]), median(secs["default"]))
    printf "bar: artis / default %.3f, to be at most %.2f: %s\n\n", r, bar, verdict(r <= bar)
}
