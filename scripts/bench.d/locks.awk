# Reads what `artis-guest locks` leaves in files KIND.NAME.ROUND: tab-separated what, lock,
# who, callers, times, sum, median, 99 %, maximum. With -v who=NAME it prints that one's
# tables, without it a row for each scheduler in -v turn=NAMES.
# Of rounds the medians are averaged by times, the 99 % are the greatest.
function add(table, key) {
    if (!((table, key) in times)) keys[table] = keys[table] (keys[table] ? "\n" : "") key
    times[table, key] += $5
    sum[table, key] += $6
    middle[table, key] += $7 * $5
    if ($8 > most[table, key]) most[table, key] = $8
    if ($9 > max[table, key]) max[table, key] = $9
}
function line(table, key, head) {
    printf "  %-110s %9.2f %10.0f %10.0f %10.0f\n", head, times[table, key] / secs[table], middle[table, key] / times[table, key],
        most[table, key], max[table, key]
}
# the rows of a table, the most frequent first
function print_table(table, limit,    n, key, i, j, x) {
    n = split(keys[table], key, "\n")
    for (i = 2; i <= n; i++) {
        x = key[i]
        for (j = i - 1; j > 0 && times[table, key[j]] < times[table, x]; j--) key[j + 1] = key[j]
        key[j + 1] = x
    }
    for (i = 1; i <= n && i <= limit; i++) line(table, key[i], key[i])
    if (!n) print "  (none)"
    if (n > limit) printf "  and %d rarer ones\n", n - limit
}
function head(text) { printf "%-112s %9s %10s %10s %10s\n", text, "per s", "median", "99 %", "max" }
BEGIN { FS = "\t"; if (!unit) unit = "ns" }
FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    split(name, part, ".")
    name = part[2]
}
$1 == "secs" { for (t = 1; t <= 4; t++) secs[name, t] += $2; secs[name] += $2; next }
$1 == "lost" { lost[name] += $2; next }
/^evictions / { split($0, part, " "); evictions[name] += part[2] * 1; turns[name]++; next }
{
    $4 = $4 == "" ? "?" : $4
    if (unit != "ns" && $1 != "hold") next # with --icount CPUs run in turn: a wait lasts a turn
    if ($1 == "wait") {
        add(name SUBSEP 1, $2)
        add(name SUBSEP 2, $2 ", by " $3 ": " $4)
        all[name] += $5
        time[name] += $6
    } else if ($1 == "sleep") {
        add(name SUBSEP 3, $3 ": " $4)
    } else {
        add(name SUBSEP 4, $2 ", held by " $3 ": " $4)
    }
}
END {
    if (who) {
        if (keys[who, 1]) {
            head(who ": RT CPU 1 spins for (" unit ")")
            print_table(who SUBSEP 1, 20)
            head("by whom, and called from")
            print_table(who SUBSEP 2, 24)
        }
        if (keys[who, 3]) {
            head("tasks on RT CPU 1 wait asleep (" unit ")")
            print_table(who SUBSEP 3, 8)
        }
        if (keys[who, 4]) {
            head(who ": held, by whom, called from (" unit ")")
            print_table(who SUBSEP 4, 40)
        }
        if (lost[who]) printf "  not paired, or no room: %d\n", lost[who]
        print ""
        exit
    }
    n = split(turn, names, " ")
    for (i = 1; i <= n; i++) {
        s = names[i]
        if (!secs[s]) continue
        printf "  %-10s spins %8.2f times and %10.0f ns a second", s, all[s] / secs[s], time[s] / secs[s]
        if (turns[s] && evictions[s]) printf ", %.3f times an eviction (%.0f evictions/s)", all[s] / secs[s] / (evictions[s] / turns[s]), evictions[s] / turns[s]
        print ""
    }
    if (secs["default"] && all["default"])
        for (i = 1; i <= n; i++) if (names[i] != "default" && secs[names[i]])
            printf "  %s / default: %.2f of the times, %.2f of the time\n", names[i],
                ratio(all[names[i]] / secs[names[i]], all["default"] / secs["default"]), ratio(time[names[i]] / secs[names[i]], time["default"] / secs["default"])
    print ""
}
