# Reads lines "NAME SECONDS", three for each turn.
function flush() { if (row) printf "  %-10s%s\n", last, row; row = ""; n = 0 }
BEGIN { print "each run, in order of time" }
{
    if ($1 != last || n == 3) flush()
    n++
    last = $1
    row = row sprintf("  %.4f", $2)
    all[$1] = all[$1] " " $2
    round[$1] += $2
    if (++runs[$1] % 3 == 0) {
        rounds[$1] = rounds[$1] " " round[$1]
        round[$1] = 0
    }
}
END {
    flush()
    print "\nmedian (lowest to highest), share of " peer
    m = split(turn, name, " ")
    for (i = 1; i <= m; i++) {
        s = name[i]
        printf "  %-10s  %.4f (%.4f to %.4f)  %.3f\n", s, median(all[s]), lowest(all[s]), highest(all[s]),
            ratio(median(all[s]), median(all[peer]))
    }
    if (all["artis"] && all[peer]) {
        r = ratio(median(all["artis"]), median(all[peer]))
        printf "\nbar: artis / %s %.3f, to be at most %.2f: %s\n", peer, r, bar, verdict(r <= bar)
    }
    for (i = 1; all["artis"] && i <= m; i++)
        if (name[i] != "artis") figure("artis_by_" name[i], ratios(rounds["artis"], rounds[name[i]]), 3, "×", "3 runs of hackbench")
}
