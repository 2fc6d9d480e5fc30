# Reads what `artis-guest verifier` prints, a file for each kernel: JSON, one field to a line.
FNR == 1 { names[++kernels] = FILENAME; sub(/.*verifier\./, "", names[kernels]) }
{ gsub(/[",\r]/, ""); key = $1; sub(/:$/, "", key) }
key == "name" { program = $2; if (!(program in known)) { known[program] = 1; order[++programs] = program } }
key == "verified_insns" { insns[program, kernels] = $2; sum[kernels] += $2 }
END {
    printf "%-18s", "verified insns"
    for (k = 1; k <= kernels; k++) printf " %9s", names[k]
    print ""
    for (p = 1; p <= programs; p++) {
        printf "%-18s", order[p]
        for (k = 1; k <= kernels; k++) printf " %9s", (order[p], k) in insns ? insns[order[p], k] : "-"
        print ""
    }
    printf "%-18s", "all"
    for (k = 1; k <= kernels; k++) printf " %9d", sum[k]
    print ""
}
