#!/bin/bash
# A HyperQueue of its own on this machine: a server with a journal, and workers. It runs a campaign of 200
# shards; meanwhile a worker is killed with all that it runs, and the server is killed and started again
# from its journal. The results must be those of one worker.
set -euo pipefail
. "$(dirname "$0")/common.sh"

export HQ_SERVER_DIR=$work/hq
journal=$work/journal
mkdir -p "$HQ_SERVER_DIR"

start_server() {
  hq server start --journal "$journal" >>"$work/server.out" 2>&1 &
  server=$!
  started+=("$server")
  until_true 20 hq server info >/dev/null 2>&1
}

start_worker() {
  hq worker start --cpus 1 --on-server-lost stop >>"$work/worker.out" 2>&1 &
  started+=("$!")
}

# Kills a worker in the middle of a shard, with all that it runs.
kill_worker() {
  local family
  for shard in $(pgrep -x flipwave); do
    { tr '\0' '\n' <"/proc/$shard/environ"; } 2>/dev/null | grep -qx "HQ_SERVER_DIR=$HQ_SERVER_DIR" || continue
    kill -STOP "$shard" 2>/dev/null || continue
    family=("$shard")
    while [ "$(ps -o comm= -p "${family[-1]}")" != hq ]; do
      family+=("$(ps -o ppid= -p "${family[-1]}" | tr -d ' ')")
      [ "${family[-1]:-1}" != 1 ] || break
    done
    [ "${family[-1]:-1}" != 1 ] || { kill -CONT "$shard"; continue; }
    # The worker first: it must not report what becomes of the others.
    kill -9 "${family[-1]}" "${family[@]}" 2>/dev/null
    return 0
  done
  return 1
}

start_server
for _ in 1 2 3; do start_worker; done

say "$(hq --version) with 3 workers runs 200 shards"
begun=$SECONDS
"$flipwave" submit "$campaign" --engine hyperqueue --shards 200 --out "$results" \
  >"$work/submitted" 2>"$work/submit.err" || { cat "$work/submit.err"; exit 1; }
cat "$work/submitted"
job=$(sed -n 's/^job: //p' "$work/submitted")

until_true 60 more_than 30
say "a worker is killed in the middle of a shard, and another one started"
until_true 20 kill_worker
start_worker

until_true 60 more_than 60
say "the server is killed, and started again from its journal"
kill -9 "$server"
sleep 2
start_server
for _ in 1 2 3; do start_worker; done

until_true 240 test -s "$results/run.json"
finished() { hq job list --filter finished --output-mode quiet | grep -q "^$job "; }
until_true 30 finished
same_as_one_worker
"$flipwave" status "$results" --json | grep -q '"lost": [1-9]' || { say "nothing was lost"; exit 1; }
say "HyperQueue: same bytes as of one worker after $((SECONDS - begun)) s"
