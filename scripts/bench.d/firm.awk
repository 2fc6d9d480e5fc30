# Reads the files firm.NAME.ROUND and hard.NAME.ROUND (cyclictest's histograms; firm also the time
# on RT CPUs) and
# migrate.NAME.ROUND (what rt-migrate-test -q -c said in each run).
function end_of_file() {
    if ((kind == "firm" || kind == "hard") && total)
        for (i = 1; i <= columns; i++)
            lat[who, kind, column[i]] = lat[who, kind, column[i]] " " quantile(share[i])
    forget_histogram()
}
function p99_delay(who,    a, n) { n = sorted(delays[who], a); return n ? a[int(0.99 * n + 0.999)] : 0 }
function cell(who, what) { return sprintf("%d (%d to %d)", median(lat[who, kindof, what]), lowest(lat[who, kindof, what]), highest(lat[who, kindof, what])) }
function bar(text, one, other, limit) {
    if (other) printf "bar: %-34s %.2f, to be at most %.2f: %s\n", text, ratio(one, other), limit, verdict(ratio(one, other) <= limit)
}
BEGIN {
    columns = split("p50 p99 max", column, " ")
    split("0.5 0.99 1", share, " ")
}
FNR == 1 {
    end_of_file()
    file_parts()
    kind = part[1]
    who = part[2]
}
kind != "migrate" { read_histogram() }
kind == "firm" && /^# On RT CPUs:/ { on_rt[who] = on_rt[who] " " $5 }
kind == "migrate" && /^run / { runs[who]++ }
kind == "migrate" && /Passed!/ { passed[who]++ }
# when each thread began, us after all were let go; the first, lowest one has to wait for a CPU
kind == "migrate" && /^ +[0-9]+: / { for (i = 3; i <= NF; i++) delays[who] = delays[who] " " $i }
END {
    end_of_file()
    n = split(turn, name, " ")
    split("firm hard", kinds, " ")
    for (k = 1; k <= 2; k++) {
        kindof = kinds[k]
        printf "  %-14s", kindof
        for (j = 1; j <= columns; j++) printf "  %-24s", column[j]
        print ""
        for (i = 1; i <= n; i++) {
            if (!lat[name[i], kindof, "p50"]) continue
            printf "  %-14s", name[i]
            for (j = 1; j <= columns; j++) printf "  %-24s", cell(name[i], column[j])
            print ""
        }
    }
    print ""
    for (i = 1; i <= n; i++)
        if (runs[name[i]])
            printf "rt-migrate-test under %-8s %d of %d runs passed; the four highest threads began after %d us (p99 of %d)\n",
                name[i], passed[name[i]], runs[name[i]], late[name[i]] = p99_delay(name[i]), split(delays[name[i]], all, " ")
    bar("start delay p99 artis / default", late["artis"], late["default"], 2)
    bar("firm p99 artis / default", median(lat["artis", "firm", "p99"]), median(lat["default", "firm", "p99"]), 1.5)
    if (on_rt["artis"])
        printf "bar: %-34s %.1f %%, to be at least 95: %s\n", "firm's time on RT CPUs (artis)", median(on_rt["artis"]), verdict(median(on_rt["artis"]) >= 95)
    bar("hard p99 artis / artis alone", median(lat["artis", "hard", "p99"]), median(lat["alone", "hard", "p99"]), 1.1)
}
