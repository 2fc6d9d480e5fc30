# Reads lines "CPUS NAME TURNED RUNS SUM MEDIAN P99 LONGEST", separated by tabs.
BEGIN { FS = "\t" }
{
    if (!($1 in seen)) { seen[$1] = 1; size[++m] = $1 }
    if (!($2 in known)) { known[$2] = 1; name[++k] = $2 }
    runs[$1, $2] = $4
    mean[$1, $2] = $4 ? $5 / $4 : 0
    longest[$1, $2] = $8
    left[$1, $2] = $4 + $3 ? 100 * $3 / ($4 + $3) : 0
}
END {
    printf "  %-22s", "instructions of a run"
    for (i = 1; i <= m; i++) printf "  %10s", size[i] " CPUs"
    printf "    growth   longest   left out\n"
    for (j = 1; j <= k; j++) {
        p = name[j]
        printf "  %-22s", p
        for (i = 1; i <= m; i++) printf "  %10.0f", mean[size[i], p]
        g = ratio(mean[size[m], p], mean[size[1], p])
        printf "    %6.2f  %8d  %7.2f %%\n", g, longest[size[m], p], left[size[m], p]
        if (runs[size[1], p] > 100 && g > worst) { worst = g; which = p }
    }
    printf "\nbar: growth from %d to %d CPUs of %s, the greatest, %.2f, to be at most %.1f: %s\n", size[1], size[m],
        which, worst, bar, verdict(worst <= bar)
    printf "longest run of artis_dispatch: %d instructions\n", longest[size[m], "artis_dispatch"]
}
