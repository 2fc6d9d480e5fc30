# shellcheck shell=bash disable=SC2154 # the variables are those of scripts/bench
# Purpose: what the parts of scripts/bench share: who takes turns, running the guest's
#          part, and the report. Use: sourced by scripts/bench; each part defines
#          prepare (kernel, turn, what is to be built) and measure (prints its figures).
turn=() vm_bins=()

# schedulers RT_CPUS: fills `turn` with the names, artis first, tells the guest their
# commands, and puts their programs into `vm_bins`.
schedulers() {
    local p line path
    turn=(artis) vm_bins=()
    echo "artis=scx_artis --rt-cpus $1" >"$tmp/guest/scheds"
    for p in "${peers[@]}"; do
        path=$(peer "$p") || exit
        turn+=("${p#scx_}") vm_bins+=(--bin "$path")
        echo "${p#scx_}=$p" >>"$tmp/guest/scheds"
    done
    for line in ${extra[@]+"${extra[@]}"}; do
        [[ $line =~ ^([a-z0-9_]+)=([^ ]+)(.*)$ ]] || die 2 "--sched '$line': what is that?" "it wants 'NAME=PROGRAM ARG...'"
        path=${BASH_REMATCH[2]}
        [[ $path == scx_artis ]] || vm_bins+=(--bin "$path")
        turn+=("${BASH_REMATCH[1]}")
        echo "${BASH_REMATCH[1]}=${path##*/}${BASH_REMATCH[3]}" >>"$tmp/guest/scheds"
    done
}

# leave_only NAME...: sets `turn` to those that --only leaves
leave_only() {
    local n
    turn=()
    for n; do [[ $only && " $only " != *" $n "* ]] || turn+=("$n"); done
    [[ ${#turn[@]} != 0 ]] || die 2 "--only '$only' leaves none" "there are: $*"
}

# guest PART [VM_OPTION]... -- ARG...: runs scripts/guest/PART; what it leaves comes to
# $raw, and what else this machine did meanwhile into the report.
guest() {
    local part=$1 options=() me=$BASHPID busy own
    shift
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    busy=$(busy_ticks) own=$(child_ticks "$me")
    scripts/vm --kernel "$kernel" --out "$raw" --file "$tmp/guest:/root/guest" ${vm_bins[@]+"${vm_bins[@]}"} \
        "${options[@]}" -- sh "guest/$part" "$@" >&2 ||
        die 1 "the measurement in the guest ended with $?" "see above" "what it left is in ${raw/#"$tmp"*/(nowhere: use --out)}"
    busy=$(($(busy_ticks) - busy)) own=$(($(child_ticks "$me") - own))
    report "of the CPU time used meanwhile, $((busy > own ? (busy - own) * 100 / busy : 0)) % was not this guest's"
}
busy_ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat; } # with what a hypervisor stole
child_ticks() { awk '{ print $16 + $17 }' "/proc/$1/stat"; }

# in_turns ROUNDS NAME...: the names of all rounds in their order, see scripts/guest/turns
in_turns() {
    local rounds=$1 i
    shift
    for ((i = 1; i <= rounds; i++)); do scripts/guest/turns $i "$@"; done
}

report() { printf '%s\n' "$@"; }
# evaluate ARG...: awk with the part's own program and the functions of stats.awk
evaluate() { awk -v kernel="$kernel" -v bench="$name" -f scripts/bench.d/stats.awk -f "scripts/bench.d/$name.awk" "$@"; }
