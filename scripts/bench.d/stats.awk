# Purpose: statistics for the parts of scripts/bench. Use: awk -f stats.awk -f PART or 'PROGRAM'.
# Plain awk (mawk, busybox): no sorting function there.

# sorted(list, into): a list of numbers, separated by blanks, ascending in into[1..n]; n
function sorted(list, into,    n, i, j, x) {
    n = split(list, into, " ")
    for (i = 2; i <= n; i++) {
        x = into[i] + 0
        for (j = i - 1; j > 0 && into[j] + 0 > x; j--) into[j + 1] = into[j]
        into[j + 1] = x
    }
    return n
}
function median(list,    a, n) {
    n = sorted(list, a)
    if (!n) return 0
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}
function lowest(list,    a) { return sorted(list, a) ? a[1] : 0 }
function highest(list,    a, n) { n = sorted(list, a); return n ? a[n] : 0 }
function ratio(a, b) { return b ? a / b : 0 }
# ratios(a, b): of two lists, the ratios of their elements
function ratios(a, b,    i, n, of, to, list) {
    n = split(a, of, " ")
    if (split(b, to, " ") != n) return ""
    for (i = 1; i <= n; i++) list = list " " ratio(of[i], to[i])
    return list
}
# figure(): a row of the table that tests/documents/readme.rs reads, with its head before the first one. values: a list,
# one for each round; window: what each side had in a round. kernel, bench: see evaluate in lib.sh.
function figure(what, values, decimals, unit, window,    form, a) {
    if (!figures++) printf "\n%-40s %3s %10s %10s %10s unit, order\n", "figures", "n", "lowest", "median", "highest"
    form = "%-40s %3d %10." decimals "f %10." decimals "f %10." decimals "f %s ABBA, %s each\n"
    printf form, kernel " " bench " " what, sorted(values, a), lowest(values), median(values), highest(values), unit, window
}
function verdict(met) { return met ? "met" : "MISSED" }

# A histogram of cyclictest (-h), read line by line with read_histogram(); then quantile(0 to 1);
# forget_histogram() before the next one. total: samples.
function read_histogram() {
    if (/^[0-9]+[ \t]+[0-9]+[ \t\r]*$/ && $2 + 0) {
        value[bins] = $1 + 0
        count[bins++] = $2 + 0
        total += $2
    }
    if (/^# Max Latencies:/) max = $4 + 0
    # beyond the histogram: they count as the maximum
    if (/^# Histogram Overflows:/) total += $4
}
function quantile(q,    i, sum) {
    for (i = 0; q < 1 && i < bins; i++) { sum += count[i]; if (sum >= q * total) return value[i] }
    return max
}
function forget_histogram() { total = bins = max = 0 }

# Of a file FIRST.SECOND.ROUND: its name without directories in tag, and that cut at the dots in part.
function file_parts() {
    tag = FILENAME
    sub(/.*\//, "", tag)
    split(tag, part, ".")
}
