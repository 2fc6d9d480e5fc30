# Reads lines "CPUS NAME TURNED RUNS SUM MEDIAN P99 LONGEST P99.9", separated by tabs. NAME:moving are
# those of the runs of NAME that moved a task from another CPU. CPUS may have sockets: "48 in 6".
function row(p, title, i, g) {
    printf "  %-22s", title
    for (i = 1; i <= m; i++) printf "  %10.0f", mean[size[i], p]
    g = ratio(mean[size[m], p], mean[size[1], p])
    printf "    %6.2f", g
    for (i = 1; i <= s; i++) printf "  %10.0f", mean[sockets[i], p]
    printf "    %6.2f", ratio(mean[sockets[s], p], mean[sockets[1], p])
    return g
}
BEGIN { FS = "\t" }
{
    if (!($1 in seen)) {
        seen[$1] = 1
        if ($1 ~ / in /) sockets[++s] = $1
        else size[++m] = $1
    }
    if (!($2 in known)) { known[$2] = 1; name[++k] = $2 }
    runs[$1, $2] = $4
    mean[$1, $2] = $4 ? $5 / $4 : 0
    most[$1, $2] = $9
    left[$1, $2] = $4 + $3 ? 100 * $3 / ($4 + $3) : 0
}
END {
    printf "  %-22s", "instructions of a run"
    for (i = 1; i <= m; i++) printf "  %10s", size[i] " CPUs"
    printf "    growth"
    for (i = 1; i <= s; i++) printf "  %10s", sockets[i]
    printf "    growth    99.9 %%  left out\n"
    for (j = 1; j <= k; j++) {
        p = name[j]
        if (p ~ /:moving$/) continue
        g = row(p, p)
        printf "  %8d  %6.2f %%\n", most[size[m], p], left[size[m], p]
        if (runs[size[1], p] > 100 && g > worst) { worst = g; which = p }
    }
    # a move is the kernel's: it locks two run queues, dequeues the task and queues it
    moving = "artis_dispatch:moving"
    for (i = 1; i <= m + s; i++) {
        n = i <= m ? size[i] : sockets[i - m]
        rest = runs[n, "artis_dispatch"] - runs[n, moving]
        mean[n, "rest"] = ratio(runs[n, "artis_dispatch"] * mean[n, "artis_dispatch"] - runs[n, moving] * mean[n, moving], rest)
        mean[n, "share"] = 100 * ratio(runs[n, moving], runs[n, "artis_dispatch"])
    }
    printf "\nruns of artis_dispatch: %% that move a task from another CPU; instructions of these, and of the others\n"
    row("share", "% that move"); printf "\n"
    row(moving, "they"); printf "\n"
    row("rest", "the others"); printf "\n"
    moved = mean[size[m], "share"] / 100
    printf "growth at the share of %d CPUs: %.2f\n", size[m],
        ratio(mean[size[m], "artis_dispatch"], moved * mean[size[1], moving] + (1 - moved) * mean[size[1], "rest"])
    printf "\nbar: growth from %d to %d CPUs of %s, the greatest, %.2f, to be at most %.1f: %s\n", size[1], size[m],
        which, worst, bar, verdict(worst <= bar)
    printf "artis_dispatch: 99.9 %% of the runs on %d CPUs take at most %d instructions\n", size[m], most[size[m], "artis_dispatch"]
}
