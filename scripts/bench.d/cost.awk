# Reads lines "NAME SECONDS", three for each turn.
function flush() { if (row) printf "  %-10s%s\n", last, row; row = ""; n = 0 }
BEGIN { print "each run, in order of time" }
{
    if ($1 != last || n == 3) flush()
    n++
    last = $1
    row = row sprintf("  %.4f", $2)
    all[$1] = all[$1] " " $2
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
    if (!all["artis"] || !all[peer]) exit
    r = ratio(median(all["artis"]), median(all[peer]))
    printf "\nbar: artis / %s %.3f, to be at most %.2f: %s\n", peer, r, bar, verdict(r <= bar)
}
