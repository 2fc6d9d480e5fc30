# Reads what `artis-guest mixer` prints in files KIND.NAME.ROUND: lines of words separated by
# tabs. Prints medians over the rounds, and the ratios of `artis` to `followers`.
BEGIN { FS = "\t" }
FNR == 1 { file_parts(); who = part[2] }
$1 == "sample" {
    mean[who] = mean[who] " " $3 / 1000
    variance[who] = variance[who] " " $4 / 1000000
    middle[who] = middle[who] " " $5 / 1000
    most[who] = most[who] " " $6 / 1000
}
$1 == "followers" { moves[who] = moves[who] " " ratio($3 * 100, $2) }
END {
    n = split(turn, name, " ")
    printf "  %-10s %10s %14s %10s %10s   %s\n", "", "mean", "variance (us2)", "median", "99 %", "followers' wake-ups on another CPU (lowest to highest)"
    for (i = 1; i <= n; i++) if (mean[name[i]])
        printf "  %-10s %10.1f %14.1f %10.1f %10.1f   %.2f %% (%.2f to %.2f)\n", name[i], median(mean[name[i]]), median(variance[name[i]]),
            median(middle[name[i]]), median(most[name[i]]), median(moves[name[i]]), lowest(moves[name[i]]), highest(moves[name[i]])
    a = "artis"; f = "followers"
    if (mean[a] && mean[f]) {
        r = ratio(median(variance[a]), median(variance[f]))
        printf "bar: variance without / with followers  %.2f, to be at least 15: %s\n", r, verdict(r >= 15)
        r = ratio(median(mean[f]), median(mean[a]))
        printf "bar: mean with / without followers      %.3f, to be 0.99 to 1.01: %s\n", r, verdict(r >= 0.99 && r <= 1.01)
        r = ratio(median(moves[f]), median(moves[a]))
        printf "bar: moves with / without followers     %.3f, to be at most 0.10: %s\n", r, verdict(median(moves[a]) > 0 && r <= 0.1)
    }
    print ""
}
