#!/usr/bin/env bash
# Drills two trees on a GPU host that has no internet, in less than five minutes, and keeps all of it in one JSON file.
# bench/README.md says how. Exit status: 0 if the fixed tree passes, 1 if it does not, 2 if the drill cannot be run.
set -euo pipefail

usage='usage: bench/gpu_drill.sh BEFORE_TREE AFTER_TREE [OUTPUT.json]
environment: PYTHON (python3), DEVICE (cuda; or cpu, auto)'

fail() {
    printf 'gpu_drill.sh: %s\n' "$1" >&2
    exit 2
}

case ${1-} in -h | --help) printf '%s\n' "$usage" && exit 0 ;; esac
if [[ $# -lt 2 || $# -gt 3 ]]; then
    printf '%s\n' "$usage" >&2
    exit 2
fi

python=${PYTHON:-python3}
device=${DEVICE:-cuda}
before=$1
after=$2
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
output=${3:-$root/bench/results/${device/cuda/gpu}-$(date -u +%Y-%m-%dT%H%M%SZ).json}

# Whatever can be known to be wrong is said before the GPU's time is spent.
for tree in "$before" "$after"; do
    [[ -d $tree ]] || fail "$tree: there is no such folder; give a checkout or an unpacked wheel of SGLang"
done
command -v timeout >/dev/null || fail "there is no timeout here; install the GNU coreutils"
command -v "$python" >/dev/null || fail "$python: there is no such program; set PYTHON to the interpreter that has torch and nixl"
case $device in auto | cpu | cuda) ;; *) fail "DEVICE=$device: it is auto, cpu or cuda" ;; esac
mkdir -p -- "$(dirname -- "$output")" || fail "$output: its folder cannot be made"
[[ ! -d $output ]] || fail "$output: this is a folder; name a file"
[[ -w $(dirname -- "$output") ]] || fail "$output: its folder cannot be written to"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH}

# Seconds that all parts may take together: the last has what is left. The rest of five minutes is for ending and writing.
budget=270
SECONDS=0

# Runs a part: its name, the most seconds that it may take, arguments of `kvlint drill`. Leaves its exit status in $status,
# 2 as well where there is no result: Python ends with 1 if kvlint cannot be imported.
part() {
    local name=$1 limit=$2 begin=$SECONDS left
    shift 2
    left=$((budget - SECONDS))
    if ((left < limit)); then limit=$((left > 1 ? left : 1)); fi
    printf '%s: at most %s s\n' "$name" "$limit" >&2
    status=0
    # In the foreground, so that Ctrl-C reaches the drill as well; SIGINT lets it end its processes.
    timeout --foreground --signal=INT --kill-after=5 "$limit" "$python" -m kvlint drill --device "$device" \
        ${processes[@]+"${processes[@]}"} --output-format json --output "$scratch/$name.json" --verbose "$@" \
        >"$scratch/$name.log" 2>&1 || status=$?
    if ((status < 2)) && [[ ! -s $scratch/$name.json ]]; then status=2; fi
    printf '%s' "$status" >"$scratch/$name.status"
    printf '%s' "$((SECONDS - begin))" >"$scratch/$name.seconds"
    if ((status > 1)); then tail -n 20 "$scratch/$name.log" >&2; fi
}

processes=()
part two-processes 50 --no-storm --rounds 1 -- "$after"
if ((status > 0)); then
    two=$status
    processes=(--one-process)
    part one-process 50 --no-storm --rounds 1 -- "$after"
    # If there is something wrong in one process as well, it is not for CUDA IPC.
    if ((status > 0 && two == 1)); then
        processes=()
        status=$two
    fi
    if [[ ${#processes[@]} -gt 0 && $status -lt 2 ]]; then printf 'two processes do not work here, by CUDA IPC or otherwise: one is used\n' >&2; fi
fi

if ((status < 2)); then
    part before 80 -- "$before"
    part after 80 -- "$after"
    part comparison "$budget" --no-storm --rounds 10 --compare "$after" -- "$before"
fi

# It gives the exit status, too.
status=0
timeout --foreground --kill-after=5 20 "$python" "$root/bench/gpu_record.py" \
    ${processes[@]+"${processes[@]}"} -- "$scratch" "$output" "$before" "$after" || status=$?
((status <= 1)) || exit 2
exit "$status"
