# shellcheck shell=bash
# Purpose: what the scripts beside it share: messages, the cache directory, a
#          private apt configuration, so that the system's own lists stay as they are, and reports.
# Needs:   bash; apt-get and dpkg-deb for the apt_* functions.
# Leaves:  only what the callers ask for, below artis_cache.
# Use:     source "$(dirname "$0")/lib.sh"

ARTIS_PROG=${0##*/}
# Named by apt and by the messages of the scripts. sid is Debian's unstable suite.
# shellcheck disable=SC2034 # used by the callers
ARTIS_SUITES=(trixie trixie-backports sid)

note() { printf '%s: %s\n' "$ARTIS_PROG" "$*" >&2; }

# die CODE SEEN [WHY] [DO]: one line each, then exit.
die() {
    local code=$1
    shift
    printf '%s: %s\n' "$ARTIS_PROG" "$1" >&2
    shift
    (($# == 0)) || printf '  %s\n' "$@" >&2
    exit "$code"
}

# The block of comments at the top of a script is its help text.
show_help() {
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
}

artis_root() { (cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd); }

artis_cache() {
    printf '%s\n' "${SCX_ARTIS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/scx_artis}"
}

need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
        die 2 "the command $1 is missing" "this script cannot work without it" \
            "install Debian's package $2 (scripts/setup does)"
}

# set_up: what scripts/setup does where it can; elsewhere its advice, and on with what is
# there: what is really missing will say so itself.
set_up() {
    local code=0
    "$(artis_root)/scripts/setup" || code=$?
    ((code == 0 || code == 2)) || exit "$code"
}

# room_for GIB WHAT: stops where there is less room in the repository's file system. What is there
# of an earlier build counts as room, since it is built again in its place.
room_for() {
    local root free built
    root=$(artis_root)
    free=$(df -Pk "$root" | awk 'NR == 2 { print $4 }')
    built=$(du -sk "$root/target" 2>/dev/null | cut -f 1) || true
    ((free + ${built:-0} >= $1 << 20)) ||
        die 1 "$((free >> 20)) GiB are free in $root" "$2 takes $1 GiB there" \
            "make room; 'cargo clean' removes what was built before"
}

# peer NAME: the path of another scheduler's program, built when it is not in the cache.
peer() {
    local root log
    root=$(artis_cache)/peers
    log=$root/install-$1.log
    if [[ ! -x $root/bin/$1 ]]; then
        note "building the peer $1 (cargo install --root $root $1)"
        mkdir -p "$root"
        # cargo install reads no configuration of a project: it is told the compiler here
        if ! BPF_CLANG=${BPF_CLANG:-$(artis_root)/build/bpf-clang} \
            cargo install --locked --root "$root" "$1" </dev/null >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            die 1 "the peer $1 could not be built" "see above, and $log" "is that its name on the registry? else choose another"
        fi
    fi
    printf '%s\n' "$root/bin/$1"
}

# apt_mirror [FIRST]: the address of Debian's main archive as apt itself has it
# configured, in either format of its sources. Nothing here knows an address.
apt_mirror() {
    local empty uris uri
    empty=$(mktemp -d)
    mkdir -p "$empty/partial"
    uris=$(apt-get -o Dir::State::Lists="$empty" --print-uris update 2>/dev/null |
        sed -nE "s,^'([^']*)/dists/[a-z]+/(In)?Release'.*,\1,p" | sort -u) || true
    rm -rf "$empty"
    while read -r uri; do
        case $uri in
        */debian | */debian/) printf '%s\n' "$uri" && return ;;
        esac
    done <<<"$uris"
    read -r uri <<<"$uris" && [[ $uri ]] && printf '%s\n' "$uri" && return
    die 2 "apt knows no source of a Debian release" \
        "the kernels come from Debian's archive, at the address apt is configured with" \
        "add a source of Debian to /etc/apt/sources.list.d, or on another system give an own kernel: scripts/vm --kernel /path/to/vmlinuz"
}

# apt_private DIR SUITE...: fills APT_OPTS with the options of a private apt
# whose lists and cache are below DIR and that knows these suites only.
apt_private() {
    local dir=$1 suite mirror keys
    shift
    mkdir -p "$dir/lists/partial" "$dir/archives/partial"
    need apt-get apt
    need dpkg-deb dpkg
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [[ -e $keys ]] || keys=${keys%.gpg}.pgp
    [[ -e $keys ]] || die 2 "Debian's keyring is missing ($keys)" \
        "without it nothing that is fetched can be verified" \
        "install Debian's package debian-archive-keyring"
    mirror=$(apt_mirror) || exit 2
    for suite in "$@"; do
        printf 'deb [arch=amd64 signed-by=%s] %s %s main\n' "$keys" "$mirror" "$suite"
    done >"$dir/sources.$$"
    mv "$dir/sources.$$" "$dir/sources.list"
    APT_OPTS=(
        -q -o Dir::Etc::SourceList="$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
        -o APT::Default-Release= -o Dir::State::Lists="$dir/lists" -o Dir::Cache="$dir"
        -o Dir::Cache::archives="$dir/archives/" -o APT::Architecture=amd64
        -o Acquire::Languages=none
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
    )
    # apt's unprivileged user cannot write below a home directory.
    ((EUID)) || APT_OPTS+=(-o APT::Sandbox::User=root)
}

# apt_update DIR: the lists of the private apt, with what failed on stderr.
apt_update() {
    local log=$1/update.log
    note "fetching the package lists of $(sed -E 's/.*\] [^ ]+ ([^ ]+) .*/\1/' "$1/sources.list" | tr '\n' ' ')"
    if ! apt-get "${APT_OPTS[@]}" update >"$log" 2>&1 || grep -qE '^(E|Err)' "$log"; then
        grep -E '^(E|W|Err)' "$log" >&2 || true
        return 1
    fi
}

# apt_unpack DIR PACKAGE TARGET: downloads one package and unpacks it below TARGET.
apt_unpack() {
    local tmp
    tmp=$(mktemp -d "$1/deb.XXXXXX")
    if ! (cd "$tmp" && apt-get "${APT_OPTS[@]}" download "$2" >apt.log 2>&1 &&
        dpkg-deb -x ./*.deb "$3"); then
        grep -E '^(E|W|Err)' "$tmp/apt.log" >&2 || true
        rm -rf "$tmp"
        return 1
    fi
    rm -rf "$tmp"
}

# head_of_report TITLE COMMAND KERNELS LOAD [PEER]...: what a report of measurements begins with.
# It names the commit, and says whether the sources differ from it: tests/documents/readme.rs reads that.
head_of_report() {
    local title=$1 command=$2 kernels=$3 load=$4 image p code versions
    shift 4
    echo "# $title, $(date '+%F %R')"
    echo
    echo "command    $command"
    for p in $kernels; do
        code=0
        image=$(scripts/kernels path "$p") || code=$?
        ((code == 0)) || { ((code == 3)) && continue || exit 1; }
        echo "kernel     ${image##*/vmlinuz-} ($p)"
    done
    versions=$("${CARGO_TARGET_DIR:-target}/release/scx_artis" --version)
    for p; do
        p=$(artis_cache)/peers/bin/scx_$p
        [[ ! -x $p ]] || versions+=", $("$p" --version | head -n 1)"
    done
    echo "programs   $versions"
    echo "sources    $(git describe --always --dirty 2>/dev/null || echo 'no commit')"
    echo "machine    $(qemu-system-x86_64 --version | sed -n '1s/ (.*//p') without KVM on $(nproc) x $(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo), load $load before"
    echo
}

# save_report NAME REPORT: the file REPORT, with its title, becomes docs/measurements/NAME-DATE.md,
# a new file each time; that of the measurement `verifier` is replaced.
save_report() {
    local file=docs/measurements/$1.md n=1
    if [[ $1 != verifier ]]; then
        file=docs/measurements/$1-$(date +%F).md
        while [[ -e $file ]]; do n=$((n + 1)) && file=docs/measurements/$1-$(date +%F)-$n.md; done
    fi
    mkdir -p docs/measurements
    { head -n 2 "$2" && echo '```' && tail -n +3 "$2" && echo '```'; } >"$file"
    note "saved: $file"
}
