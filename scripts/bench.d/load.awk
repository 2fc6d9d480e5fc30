# Reads a number of seconds from each line.
{ all = all " " $1; row = row sprintf("  %.3f", $1) }
END {
    print "  each, s:" row
    printf "  median %.3f s\n", median(all)
    printf "bar: the slowest %.3f s, to be at most %.1f: %s\n", highest(all), bar, verdict(NR && highest(all) <= bar)
}
