# Reads what scripts/guest/prediction leaves in files SCENE.CELL.ROUND: tab-separated names
# and figures. Prints a row for each cell: moves to the RT CPU a second, the share of them
# that ended in an eviction within 1 and 2 ms of own run time (the same yardstick for every C), evictions a
# second, how long the RT CPU idled, and the work done, of each scene relative to the best.
FNR == 1 {
    file_parts()
    scene = part[1]
    cell = part[2]
    if (!((cell) in known)) { known[cell] = 1; order[++cells] = cell }
    if (!(scene in is_scene)) { is_scene[scene] = 1; scene_nr[++scenes] = scene }
}
BEGIN { FS = "\t" }
$1 == "secs" { secs[cell] += $2 }
$1 == "moves" { moves[cell] += $2 }
$1 == "wasted_1000us" { wasted1[cell] += $2 }
$1 == "wasted_2000us" { wasted2[cell] += $2 }
$1 == "rt_side" { evictions[cell] += $2 }
$1 == "rt_idle" { idle[cell] += $3 }
$1 == "steps" { work[scene, cell] += $2 }
END {
    for (j = 1; j <= scenes; j++) for (i = 1; i <= cells; i++)
        if (work[scene_nr[j], order[i]] > best[j]) best[j] = work[scene_nr[j], order[i]]
    for (i = 1; i <= cells; i++) {
        c = order[i]
        for (j = 1; j <= scenes; j++) share[c] += ratio(work[scene_nr[j], c], best[j]) / scenes
    }
    # those with the most work first
    for (i = 2; i <= cells; i++) {
        c = order[i]
        for (j = i - 1; j > 0 && share[order[j]] < share[c]; j--) order[j + 1] = order[j]
        order[j + 1] = c
    }
    printf "  %-8s %7s %4s %10s %12s %12s %13s %11s %8s\n", "rule", "C us", "K", "moves/s", "wasted 1 ms", "wasted 2 ms", "evictions/s", "RT idle", "work"
    for (i = 1; i <= cells; i++) {
        c = order[i]
        split(c ":-:-", part, ":")
        printf "  %-8s %7s %4s %10.1f %10.1f %% %10.1f %% %13.1f %9.1f %% %8.3f\n", part[1], part[2], part[3], moves[c] / secs[c], 100 * ratio(wasted1[c], moves[c]), 100 * ratio(wasted2[c], moves[c]),
            evictions[c] / secs[c], idle[c] / secs[c] / 1e7, share[c]
    }
    print ""
}
